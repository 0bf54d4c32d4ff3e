import { Component, type ReactNode } from 'react';

interface Props {
  children: ReactNode;
}

/** A page that breaks takes only itself down, and says how to go on. React has no other form for this than a class. */
export class Boundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="fault" role="alert">
        <p>
          <strong>This page broke: {error.message}</strong> It is a fault of the console. Reload, or go to another page.
        </p>
        <div className="row">
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      </div>
    );
  }
}
