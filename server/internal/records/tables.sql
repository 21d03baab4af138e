-- The tables of version 6. Columns are only ever added behind the others. Times are
-- nanoseconds since 1970, 0 for none.

CREATE TABLE IF NOT EXISTS keys (
	id      TEXT PRIMARY KEY,
	name    TEXT NOT NULL,
	tenant  TEXT NOT NULL,
	hash    BLOB NOT NULL UNIQUE, -- SHA-256 of the key, which is nowhere
	scopes  TEXT NOT NULL,        -- JSON
	limits  TEXT NOT NULL,        -- JSON
	created INTEGER NOT NULL,
	revoked INTEGER NOT NULL DEFAULT 0
);

-- One name stands for one key at a time.
CREATE UNIQUE INDEX IF NOT EXISTS keys_by_name ON keys (name) WHERE revoked = 0;

CREATE TABLE IF NOT EXISTS spending (
	key           TEXT NOT NULL,
	tenant        TEXT NOT NULL,
	day           TEXT NOT NULL, -- 2026-01-31, in UTC
	calls         INTEGER NOT NULL DEFAULT 0,
	input_tokens  INTEGER NOT NULL DEFAULT 0,
	output_tokens INTEGER NOT NULL DEFAULT 0,
	usd           REAL NOT NULL DEFAULT 0,
	unpriced      INTEGER NOT NULL DEFAULT 0,
	tool_calls    INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (key, day)
);

CREATE TABLE IF NOT EXISTS runs (
	id         TEXT PRIMARY KEY,
	tenant     TEXT NOT NULL,
	key        TEXT NOT NULL,
	spec       TEXT NOT NULL,            -- JSON
	question   TEXT NOT NULL,
	background INTEGER NOT NULL,
	status     TEXT NOT NULL,
	reason     TEXT NOT NULL DEFAULT '',
	outcome    TEXT NOT NULL DEFAULT '', -- JSON
	charged    TEXT NOT NULL DEFAULT '', -- JSON: what is in spending already
	created    INTEGER NOT NULL,
	ended      INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS runs_by_tenant ON runs (tenant, created DESC, id);
CREATE INDEX IF NOT EXISTS runs_by_status ON runs (status);

CREATE TABLE IF NOT EXISTS idempotency (
	tenant  TEXT NOT NULL,
	word    TEXT NOT NULL, -- the client's
	digest  BLOB NOT NULL, -- of the request
	run     TEXT NOT NULL, -- or the session or the direct answer that it has made
	created INTEGER NOT NULL,
	PRIMARY KEY (tenant, word)
);

CREATE TABLE IF NOT EXISTS files (
	id      TEXT PRIMARY KEY,
	tenant  TEXT NOT NULL,
	name    TEXT NOT NULL,
	purpose TEXT NOT NULL,
	bytes   INTEGER NOT NULL,
	created INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS files_by_tenant ON files (tenant, created DESC, id);

CREATE TABLE IF NOT EXISTS responses (
	id       TEXT PRIMARY KEY,
	tenant   TEXT NOT NULL,
	run      TEXT NOT NULL DEFAULT '', -- empty for a direct answer
	previous TEXT NOT NULL DEFAULT '',
	input    TEXT NOT NULL,            -- JSON: the messages that the request added
	body     TEXT NOT NULL,            -- JSON: the response as it was last
	created  INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS responses_by_tenant ON responses (tenant, created DESC, id);

CREATE TABLE IF NOT EXISTS conversations (
	id       TEXT PRIMARY KEY,
	tenant   TEXT NOT NULL,
	metadata TEXT NOT NULL,    -- JSON
	created  INTEGER NOT NULL,
	used     INTEGER NOT NULL, -- when it grew last
	bytes    INTEGER NOT NULL  -- of its items
);

CREATE TABLE IF NOT EXISTS conversation_entries (
	conversation TEXT NOT NULL,
	n            INTEGER NOT NULL, -- its place
	item         TEXT NOT NULL,    -- the ID of a client's item, empty for a response
	turn         TEXT NOT NULL,    -- JSON: the item
	response     TEXT NOT NULL,    -- the ID of a response, empty for an item
	created      INTEGER NOT NULL,
	PRIMARY KEY (conversation, n)
);

CREATE INDEX IF NOT EXISTS entries_by_item ON conversation_entries (item);
CREATE INDEX IF NOT EXISTS entries_by_response ON conversation_entries (response);

CREATE TABLE IF NOT EXISTS sessions (
	id       TEXT PRIMARY KEY,
	tenant   TEXT NOT NULL,
	key      TEXT NOT NULL,
	name     TEXT NOT NULL,             -- empty for none
	spec     TEXT NOT NULL,             -- JSON
	digest   BLOB NOT NULL,             -- of the request that made it
	standing TEXT NOT NULL,             -- JSON: as it was saved last
	unsaved  INTEGER NOT NULL,          -- 1 if a snippet may have run since, 2 if it is in session_log
	bytes    INTEGER NOT NULL DEFAULT 0, -- of its folder
	created  INTEGER NOT NULL,
	used     INTEGER NOT NULL           -- when it was saved last
);

CREATE UNIQUE INDEX IF NOT EXISTS sessions_by_name ON sessions (tenant, name) WHERE name != '';
CREATE INDEX IF NOT EXISTS sessions_by_tenant ON sessions (tenant, created DESC, id);

-- What has changed sessions since they were saved.
CREATE TABLE IF NOT EXISTS session_log (
	session TEXT NOT NULL,
	n       INTEGER NOT NULL, -- its place
	entry   BLOB NOT NULL,    -- JSON
	PRIMARY KEY (session, n)
);

CREATE TABLE IF NOT EXISTS contents (
	path    TEXT PRIMARY KEY, -- of the file, below the data folder
	digest  BLOB NOT NULL,    -- SHA-256; empty if the file checks itself, or is of an earlier version
	bytes   INTEGER NOT NULL, -- -1 if they are not known
	created INTEGER NOT NULL
);

-- What was lost by damage, so that a request for it gets more than "there is none".
CREATE TABLE IF NOT EXISTS lost (
	id    TEXT PRIMARY KEY,
	found INTEGER NOT NULL
);
