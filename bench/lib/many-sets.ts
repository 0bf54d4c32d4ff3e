// A double of the Kubernetes API with many sets, each with one pod that is ready.
import { readFileSync } from 'node:fs';
import { annotation, label } from '../../src/engines/kubernetes/object-names.ts';
import { startKubeApi } from '../../test/helpers/kube-api.ts';

const api = await startKubeApi();
const fixture = new URL('../../test/engines/kubernetes/fixtures/ready.json', import.meta.url);
const pod = JSON.parse(readFileSync(fixture, 'utf8'));
const namespace = 'ns';
for (let n = 0; n < Number(process.argv[2]); n++) {
  const labels = { ...pod.metadata.labels, [label.installation]: 'home', [label.set]: `set_${n}` };
  const name = `set-${n}`;
  api.put(`/apis/apps/v1/namespaces/${namespace}/replicasets/${name}`, {
    metadata: { name, namespace, labels, annotations: { [annotation.instances]: `ins_${n}` } },
    spec: { replicas: 1 },
  });
  const annotations = { [annotation.instance]: `ins_${n}` };
  const metadata = { ...pod.metadata, uid: `uid-${n}`, name: `${name}-pod`, namespace, labels, annotations };
  api.put(`/api/v1/namespaces/${namespace}/pods/${name}-pod`, { ...pod, metadata });
}
setInterval(() => api.bookmark(), 60_000);
process.on('message', () => process.send!(api.watches().open));
process.send!(api.access.server);
