/** The absolute form of a target (RFC 9112, 3.2.2), which proxies send; a server has to take it like the path in it. */
const absoluteForm = /^https?:\/\/[^/?#]+/i;

/** Of any other target: itself. */
export function originForm(target: string): string {
  if (target.startsWith('/') || !absoluteForm.test(target)) return target;
  const rest = target.replace(absoluteForm, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}
