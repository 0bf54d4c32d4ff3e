// Alert rules, alerts, and what the watcher remembers.
import type { AlertMetric, Comparator, OnCanary, Severity } from '../../contract/alert-rules.ts';

export interface AlertTables {
  alert_rule: {
    id: string;
    project_id: string;
    environment: string;
    name: string;
    metric: AlertMetric;
    comparator: Comparator;
    threshold: number;
    hostname: string | null;
    window_s: number;
    for_s: number;
    severity: Severity;
    on_canary: OnCanary;
    enabled: number;
    created_at: number;
    updated_at: number;
    version: number;
  };
  alert: {
    id: string;
    account_id: string;
    project_id: string;
    /** The rule may be deleted. */
    rule_id: string;
    environment: string;
    /** A revision, a hostname or the environment itself. At most one alert per rule and subject is firing. */
    subject: string;
    name: string;
    severity: Severity;
    message: string;
    revision: number | null;
    hostname: string | null;
    value: number;
    fired_at: number;
    resolved_at: number | null;
  };
  /** Since when a condition holds, or, for a firing alert, no longer holds. No row: there is nothing to wait for. */
  alert_watch: { rule_id: string; subject: string; holds: number; since: number };
}
