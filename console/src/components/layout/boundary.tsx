import { Component, type ReactNode } from 'react';

interface Props {
  children: ReactNode;
}

/** Contains an error in a page, so that the rest of the console keeps working. React supports this only as a class. */
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
          <strong>Something went wrong: {error.message}</strong> This is a bug in the console. Reload, or go to another
          page.
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
