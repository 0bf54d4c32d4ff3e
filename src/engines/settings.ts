// The settings of regions and their engines.
import { portRange, wholeNumber } from '../lib/setting-parsers.ts';
import { parseSubnetPool } from './docker/network/setting.ts';
import { defaultSubnetPool } from './docker/network/subnets.ts';
import { kubernetesSettings } from './kubernetes/settings.ts';
import { parseRegions } from './region-setting.ts';
import { parseMirrors } from './registry/endpoints.ts';

export const engineSettings = {
  SLUICE_REGIONS: {
    default: 'local=auto',
    about:
      'Comma-separated `name=engine`; engines `auto`, `standin:`, `docker:[socket or tcp address]`, several of ' +
      'these joined by `+` (`docker:tcp://a+docker:tcp://b`), ' +
      '`kubernetes:[context]` or `kubernetes:in-cluster`. `auto` is Docker where its socket answers at the first start, the stand-in otherwise; later ' +
      'starts go on with the same engine. See docs/engines.md.',
    parse: parseRegions,
  },
  SLUICE_DOCKER_NETWORKS: {
    default: defaultSubnetPool,
    about:
      'Range of addresses from which every project with instances on Docker gets a network of its own, and the size of each. ' +
      'It should be used for nothing else that instances or the host have to reach.',
    parse: parseSubnetPool,
  },
  SLUICE_DOCKER_HOST_GRACE_S: {
    default: '30',
    about:
      'Seconds, from 1 to 3600, that one of several Docker hosts of a region may be away before what it runs counts as gone and is ' +
      'replaced on the others.',
    parse: wholeNumber(1, 3600),
  },
  SLUICE_DOCKER_DISK_MB: {
    default: '10240',
    about:
      'MiB, from 16 to 16777216, that a container may write to its own file system, where the storage of Docker can limit that: ' +
      'overlay2 on XFS with `pquota`, Btrfs, ZFS.',
    parse: wholeNumber(16, 16_777_216),
  },
  SLUICE_INSTANCE_PORTS: {
    default: '20000-29999',
    about:
      'Ports that instances are given on the host of their engine, 100 or more; those that something else uses are ' +
      'skipped. They are best outside the range from which the kernel takes ports (`net.ipv4.ip_local_port_range`).',
    parse: portRange(100),
  },
  SLUICE_PULL_TIMEOUT_S: {
    default: '1800',
    about:
      'Seconds that pulling an image may take in all, from 1 to 86400, with the attempts to reach a registry that is away. ' +
      'A deployment whose image is not there by then fails.',
    parse: wholeNumber(1, 86_400),
  },
  SLUICE_REGISTRY_MIRRORS: {
    default: '',
    about:
      'Mirrors of registries, comma-separated `registry=address`, as in `docker.io=https://mirror.example`. Kubernetes regions ' +
      'ask them first, and without a login, which digest a tag has.',
    parse: parseMirrors,
  },
  ...kubernetesSettings,
};
