// A table on a wide screen, cards on a narrow one: each cell carries the name of its column.
import type { ReactNode } from 'react';

interface Column<T> {
  name: string;
  /** Only for screen readers, as for a column of buttons. */
  quiet?: boolean;
  cell(item: T): ReactNode;
}

interface TableProps<T> {
  label: string;
  items: T[];
  keyOf(item: T): string;
  columns: Column<T>[];
  /** On a narrow screen its cells flow without the names of their columns: for cells that speak for themselves. */
  isFlowing?: boolean;
}

export function Table<T>({ label, items, keyOf, columns, isFlowing = false }: TableProps<T>) {
  return (
    <table className={isFlowing ? 'table flowing' : 'table'}>
      <caption className="unseen">{label}</caption>
      <thead>
        <tr>
          {columns.map(({ name, quiet }) => (
            <th key={name} scope="col">
              {quiet ? <span className="unseen">{name}</span> : name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)}>
            {columns.map(({ name, quiet, cell }) => (
              <td key={name} data-label={quiet ? undefined : name}>
                <div>{cell(item)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
