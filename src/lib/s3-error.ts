/** What a store answered, or why it did not, for the person who runs the command or reads the log. */
export class S3Error extends Error {
  override name = 'S3Error';
}
