// A search that runs as one types, a moment after the last key.
import { useEffect, useState } from 'react';

const pauseMs = 120;

interface Typed {
  text: string;
  /** What is searched for. */
  search: string;
  setText(text: string): void;
}

export function useTyped(): Typed {
  const [text, setText] = useState('');
  const [search, setSearch] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSearch(text.trim()), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return { text, search, setText };
}

interface SearchBoxProps {
  typed: Typed;
  label: string;
  /** Whether the list has nothing even without a search: then there is nothing to search either. */
  isEmpty?: boolean;
}

export function SearchBox({ typed, label, isEmpty = false }: SearchBoxProps) {
  if (isEmpty && typed.text === '' && typed.search === '') return null;
  return (
    <input
      type="search"
      aria-label={label}
      placeholder="Search"
      title={label}
      maxLength={200}
      value={typed.text}
      onChange={(event) => typed.setText(event.currentTarget.value)}
    />
  );
}
