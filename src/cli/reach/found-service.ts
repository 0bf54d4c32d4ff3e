/** The service a command talks to, and the token it uses there. */
export interface FoundService {
  url: string;
  token: string;
  /** Where address and token came from, for people. */
  from: string;
}
