// How much a container may do. Pod Security `restricted` where the image names a user by a number other than 0: only then
// can Kubernetes know that it is not root. `baseline` otherwise.

export type PodSecurity = 'restricted' | 'baseline';

/** `user` as an image names it: `1000`, `1000:1000`, `app`, `app:app`, or nothing. */
export function securityFor(user: string): PodSecurity {
  const [name = ''] = user.split(':');
  return /^[0-9]+$/.test(name) && Number(name) > 0 ? 'restricted' : 'baseline';
}

/** Granted by default, and nothing that a web service needs. The others let an entry point prepare files and switch users. */
const needlessCapabilities = ['AUDIT_WRITE', 'MKNOD', 'NET_RAW', 'SETFCAP', 'SETPCAP', 'SYS_CHROOT'];

export function containerSecurity(level: PodSecurity): object {
  const isRestricted = level === 'restricted';
  return {
    allowPrivilegeEscalation: false,
    privileged: false,
    capabilities: { drop: isRestricted ? ['ALL'] : needlessCapabilities },
    seccompProfile: { type: 'RuntimeDefault' },
    ...(isRestricted && { runAsNonRoot: true }),
  };
}
