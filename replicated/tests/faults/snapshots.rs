//! Snapshots: made when the log has grown, loaded by nodes that lack what was trimmed.
