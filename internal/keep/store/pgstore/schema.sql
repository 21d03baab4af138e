-- The tables of a store. A section upgrades a database by one version. Never change a released
-- section: existing stores depend on it. The text that users wrote is bytea, because text accepts
-- neither NUL nor invalid UTF-8.

-- version 1

-- The worker of a lease has a row as long as the lease can be valid. Without the row, the leases of
-- the worker are free: nobody inserts it again.
CREATE TABLE workers (
	id    text PRIMARY KEY,
	name  text NOT NULL, -- for people
	until timestamptz NOT NULL
);

CREATE TABLE logs (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	kind        text COLLATE "C" NOT NULL,
	name        text COLLATE "C" NOT NULL,
	title       bytea NOT NULL,
	find        bytea NOT NULL, -- name and title in lower case
	spec        bytea NOT NULL,
	parent      bytea NOT NULL,
	parent_turn bigint NOT NULL,
	created     bigint NOT NULL, -- in nanoseconds
	made        bytea NOT NULL, -- a random number, by which a process recognises its own log
	UNIQUE (kind, name)
);

-- What each entry changes stands apart, so that its rows are small. No index has one of these
-- columns: PostgreSQL then updates a row within its page.
CREATE TABLE heads (
	log           bigint PRIMARY KEY REFERENCES logs (id) ON DELETE CASCADE,
	worker        text, -- the owner, or NULL
	epoch         bigint NOT NULL DEFAULT 0, -- counts the owners
	batch         bigint NOT NULL DEFAULT 0, -- counts the writes of the owner
	ended_epoch   bigint NOT NULL DEFAULT 0, -- the owner before, and the number of its writes
	ended_batch   bigint NOT NULL DEFAULT 0,
	last          bigint NOT NULL, -- the seq of the last entry
	updated       bigint NOT NULL, -- in nanoseconds
	status        bytea NOT NULL,
	turn          bigint NOT NULL,
	reason        bytea NOT NULL,
	calls         bigint NOT NULL DEFAULT 0,
	input_tokens  bigint NOT NULL DEFAULT 0,
	output_tokens bigint NOT NULL DEFAULT 0,
	usd           double precision NOT NULL DEFAULT 0,
	unpriced      bigint NOT NULL DEFAULT 0,
	tool_calls    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Every content has a row, also one that is an object. Foreign keys keep what is in use.
CREATE TABLE contents (
	digest bytea PRIMARY KEY,
	size   bigint NOT NULL,
	bytes  bytea, -- NULL: an object
	stored timestamptz NOT NULL
);

CREATE TABLE entries (
	log           bigint NOT NULL REFERENCES logs (id) ON DELETE CASCADE,
	seq           bigint NOT NULL,
	turn          bigint NOT NULL,
	kind          bytea NOT NULL,
	key           bytea NOT NULL,
	digest        bytea REFERENCES contents (digest),
	data          bytea, -- NULL: the content data_digest
	data_digest   bytea REFERENCES contents (digest),
	sum           bigint NOT NULL, -- see sumEntry
	calls         bigint NOT NULL,
	input_tokens  bigint NOT NULL,
	output_tokens bigint NOT NULL,
	usd           double precision NOT NULL,
	unpriced      bigint NOT NULL,
	tool_calls    bigint NOT NULL,
	PRIMARY KEY (log, seq)
);
CREATE INDEX entries_by_kind ON entries (log, kind, seq);
CREATE INDEX entries_by_digest ON entries (digest) WHERE digest IS NOT NULL;
CREATE INDEX entries_by_data_digest ON entries (data_digest) WHERE data_digest IS NOT NULL;
