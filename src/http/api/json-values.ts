// How many values a JSON text has, without parsing it: to build a hundred thousand small values takes many times as long as
// to count them, and no request needs so many.

export const maxValues = 20_000;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];

/** Counts the commas outside texts. Of something that is not JSON it says nothing: that is for the parser to refuse. */
export function hasTooManyValues(json: Uint8Array): boolean {
  if (json.length <= maxValues) return false;
  let commas = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isText) {
      if (byte === backslash) at++;
      else if (byte === quote) isText = false;
    } else if (byte === quote) {
      isText = true;
    } else if (byte === comma && ++commas >= maxValues) {
      return true;
    }
  }
  return false;
}
