import { useEffect } from 'react';
import { Form, Input, textField } from '../components/forms/form.tsx';
import { Mark, ThemeButton } from '../components/layout/shell.tsx';
import { signIn } from '../session.ts';

export function SignInPage({ message }: { message: string | null }) {
  useEffect(() => {
    document.title = 'Sign in · Sluice';
  }, []);
  return (
    <main className="sign-in">
      <div className="panel">
        <p className="brand">
          <Mark />
          Sluice
        </p>
        <h1>Sign in</h1>
        <p className="hint">
          With a token of this service. The first start printed one and kept it in <code>data/admin-token</code>.
        </p>
        {message && (
          <p className="fault" role="alert">
            {message}
          </p>
        )}
        <Form label="Sign in" verb="Sign in" submit={(data) => signIn(textField(data, 'token') ?? '')}>
          <Input
            name="token"
            label="Token"
            type="password"
            autoFocus
            hint="Kept in this tab until you close it or sign out."
          />
        </Form>
        <ThemeButton />
      </div>
    </main>
  );
}
