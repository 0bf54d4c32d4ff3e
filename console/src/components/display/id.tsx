/** Ids are long; where many are shown, their ends tell them apart. The whole text is there to be read and copied. */
export function ShortIds({ text }: { text: string }) {
  return <code title={text}>{text.replaceAll(/([a-z]{3}_)[0-9a-z]{20}([0-9a-z]{6})/g, '$1…$2')}</code>;
}
