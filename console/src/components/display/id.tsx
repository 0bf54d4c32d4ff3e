/** Shortens the ids in a text to their last characters, which differ. The title has the whole text. */
export function ShortIds({ text }: { text: string }) {
  return <code title={text}>{text.replaceAll(/([a-z]{3}_)[0-9a-z]{20}([0-9a-z]{6})/g, '$1…$2')}</code>;
}
