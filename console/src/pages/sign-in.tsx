import { useEffect } from 'react';
import { Copyable } from '../components/display/copy.tsx';
import { Form, Input, textField } from '../components/forms/form.tsx';
import { Notices } from '../components/layout/notices.tsx';
import { Logo, ThemeButton } from '../components/layout/shell.tsx';
import { signIn } from '../session.ts';

export function SignInPage({ message }: { message: string | null }) {
  useEffect(() => {
    document.title = 'Sign in · Sluice';
  }, []);
  return (
    <main className="sign-in">
      <div className="panel">
        <p className="brand">
          <Logo />
          Sluice
        </p>
        <h1>Sign in</h1>
        <div className="hint">
          <p>
            Use an API token. The first one is in the data directory of the service, in the folder in which it runs:
          </p>
          <Copyable text="cat data/admin-token" label="the command" />
        </div>
        {message && (
          <p className="fault" role="status">
            {message}
          </p>
        )}
        <Form label="Sign in" verb="Sign in" submit={(data) => signIn(textField(data, 'token') ?? '')}>
          <Input
            name="token"
            label="Token"
            type="password"
            autoFocus
            required
            hint="Kept by the browser in a cookie that no script can read, until you sign out or for seven days without use."
          />
        </Form>
        <ThemeButton />
      </div>
      <Notices />
    </main>
  );
}
