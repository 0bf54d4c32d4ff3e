// npm run deb [-- file.tgz]: a package for Debian and its relatives of what `npm pack` makes, with the Node.js that comes with the
// install, its units for systemd, and a user to run as. Like the instructions of docs/installing.md it puts the package below
// /opt/sluice, where the units expect it. It starts nothing: the ports may be in use.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { installDir } from '../src/lib/install.ts';

const modules = 'opt/sluice/lib/node_modules';
const units = ['sluice.service', 'sluice.socket'];
const architectures: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };

const command = `#!/bin/sh
exec /bin/sh /${modules}/sluice/bin/with-node.sh sluice.js "$@"
`;

/** Run by dpkg as root. What is running goes on while files are replaced; a reload hands over to them. */
const maintainerScripts = {
  postinst: `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
id sluice > /dev/null 2>&1 || useradd --system --user-group --home-dir /var/lib/sluice --shell /usr/sbin/nologin sluice
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if systemctl --quiet is-active sluice; then
  systemctl reload sluice || echo 'sluice: the version before serves on, see: journalctl -u sluice' >&2
elif [ -z "$2" ]; then
  echo 'sluice: start it with: systemctl enable --now sluice.socket sluice'
fi
`,
  prerm: `#!/bin/sh
set -e
[ "$1" = remove ] && [ -d /run/systemd/system ] || exit 0
systemctl disable --now sluice.socket sluice || true
# What outlives the service otherwise: instances of the stand-in, and a router that ends requests. Their program goes with it.
systemctl kill --kill-whom=all --signal=SIGKILL sluice 2> /dev/null || true
`,
  postrm: `#!/bin/sh
set -e
# What the service compiled is beside its files.
case "$1" in remove | purge) rm -rf /opt/sluice ;; esac
if [ "$1" = purge ]; then
  rm -rf /var/lib/sluice /etc/sluice.env
  if id sluice > /dev/null 2>&1; then userdel sluice || true; fi
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload
`,
};

const controlOf = (version: string, architecture: string, installedKiB: number) => `Package: sluice
Version: ${version}
Architecture: ${architecture}
Maintainer: Sluice <sluice@localhost>
Installed-Size: ${installedKiB}
Depends: libc6 (>= 2.28), libstdc++6, libgcc-s1, passwd
Suggests: docker.io, haproxy (>= 2.6), ffmpeg, postgresql
Section: admin
Priority: optional
Description: self-hosted deployments with canary rollouts
 Deploys container images: starts the new version, sends it a share of the
 traffic, compares it with the old one, and promotes it or rolls it back.
`;

function put(path: string, text: string, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
}

/** Returns its path, in `folder`. */
export function makeDeb(packed: string, folder: string, compression = 'xz'): string {
  const root = mkdtempSync(join(tmpdir(), 'sluice-deb-'));
  try {
    chmodSync(root, 0o755);
    const sluice = join(root, modules, 'sluice');
    mkdirSync(sluice, { recursive: true });
    execFileSync('tar', ['--extract', '--file', packed, '--directory', sluice, '--strip-components=1']);
    execFileSync('chmod', ['--recursive', 'u=rwX,go=rX', root]);
    const node = `node-linux-${process.arch}/bin/node`;
    mkdirSync(dirname(join(root, modules, node)), { recursive: true });
    copyFileSync(join(installDir, 'node_modules', node), join(root, modules, node));
    chmodSync(join(root, modules, node), 0o755);
    put(join(root, 'usr/bin/sluice'), command, 0o755);
    for (const unit of units) {
      put(join(root, 'lib/systemd/system', unit), readFileSync(join(sluice, 'deploy', unit), 'utf8'), 0o644);
    }
    mkdirSync(join(root, 'usr/share/doc/sluice'), { recursive: true });
    symlinkSync(`/${modules}/sluice/LICENSE`, join(root, 'usr/share/doc/sluice/copyright'));
    const { version } = JSON.parse(readFileSync(join(sluice, 'package.json'), 'utf8'));
    const architecture = architectures[process.arch]!;
    const installedKiB = Number.parseInt(execFileSync('du', ['-sk', root], { encoding: 'utf8' }), 10);
    put(join(root, 'DEBIAN/control'), controlOf(version, architecture, installedKiB), 0o644);
    for (const [name, text] of Object.entries(maintainerScripts)) put(join(root, 'DEBIAN', name), text, 0o755);
    const path = join(folder, `sluice_${version}_${architecture}.deb`);
    execFileSync('dpkg-deb', ['--root-owner-group', `-Z${compression}`, '--build', root, path], { stdio: 'ignore' });
    return path;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const [given] = process.argv.slice(2);
  const pack = () => execFileSync('npm', ['pack', '--silent'], { cwd: installDir, encoding: 'utf8' }).trim();
  const path = makeDeb(given ?? join(installDir, pack().split('\n').at(-1)!), installDir);
  console.log(`${path}, ${(statSync(path).size / 1e6).toFixed(1)} MB`);
}
