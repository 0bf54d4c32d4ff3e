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
    /** It may be gone. */
    rule_id: string;
    environment: string;
    /** What of the environment it is about; of a rule and a subject, one alert is firing at most. */
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
  /** Since when a condition holds, or, while its alert is firing, no longer does. No row: nothing to wait for. */
  alert_watch: { rule_id: string; subject: string; holds: number; since: number };
}
