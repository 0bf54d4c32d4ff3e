import { CatalogueReadError, type CatalogueStream, catalogue } from '../../../src/client/index.ts';
import { PageHead } from '../components/layout/page-head.tsx';
import { Empty, Shown } from '../components/layout/states.tsx';
import { useRead } from '../use-read.ts';

const site = catalogue(location.origin);

/** A service without a catalogue, or before its first publish, has no document: that is not an error. */
async function readStreams(): Promise<CatalogueStream[]> {
  try {
    return await site.streams();
  } catch (error) {
    if (error instanceof CatalogueReadError && error.code === 'bad_status') return [];
    throw error;
  }
}

export function CataloguePage() {
  const streams = useRead<CatalogueStream[]>('catalogue', readStreams);
  return (
    <>
      <PageHead
        title="Catalogue"
        actions={
          <a className="quiet" href="/" target="_blank" rel="noreferrer">
            Open gallery
          </a>
        }
      />
      <Shown of={streams}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No streams." command="npx sluice catalogue build">
              <p>
                Nothing has been published, or another process serves the catalogue. To publish, describe streams in{' '}
                <code>catalogue.yaml</code> and build them:
              </p>
            </Empty>
          ) : (
            <ul className="cards">
              {items.map((stream) => (
                <StreamCard key={stream.id} stream={stream} />
              ))}
            </ul>
          )
        }
      </Shown>
    </>
  );
}

/** An extra field of the document, which the client does not check: only a path on this site is used. */
const posterOf = ({ poster }: CatalogueStream): string | undefined =>
  typeof poster === 'string' && /^\/(?!\/)/.test(poster) ? poster : undefined;

function StreamCard({ stream }: { stream: CatalogueStream }) {
  const { id, title, fps, duration_s, progressive, hls } = stream;
  const poster = posterOf(stream);
  const minutes = Math.floor(duration_s / 60);
  const seconds = String(Math.floor(duration_s % 60)).padStart(2, '0');
  return (
    <li className="card stream">
      {poster && <img src={poster} alt="" loading="lazy" width="320" height="180" />}
      <h2>
        <a href={`/#/${encodeURIComponent(id)}`} target="_blank" rel="noreferrer">
          {title}
        </a>
      </h2>
      <p className="small">
        <code>{id}</code> · {minutes}:{seconds} · {Number(fps.toFixed(3))} fps
      </p>
      <p className="row">
        {hls && (
          <a href={hls} target="_blank" rel="noreferrer">
            HLS<span className="unseen"> of {title}</span>
          </a>
        )}
        {Object.entries(progressive).map(([label, url]) => (
          <a key={label} href={url} target="_blank" rel="noreferrer">
            {label}
            <span className="unseen"> of {title}</span>
          </a>
        ))}
      </p>
    </li>
  );
}
