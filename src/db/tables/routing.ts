// What routers follow, and what they have in force.
export interface RoutingTables {
  /** The routing version at which an environment last changed. Stays when the environment is deleted. */
  routing: { project_id: string; environment: string; version: number };
  /** A router, the version it has in force, and a count that rises as long as it lives. */
  router: { id: string; version: number; beat: number };
  /** An instance that left the table at this version. */
  instance_drain: {
    instance_id: string;
    version: number;
    /** When every live router had that version in force; null: not yet. */
    unrouted_at: number | null;
  };
}
