package session

// component names our tables in the database's list of migrations.
const component = "session"

// steps make our tables; they are only ever appended to. Times are Unix
// milliseconds. Spend has no foreign key: what was spent stays spent when its
// session is deleted. A row of session_text belongs to the event with the same
// number.
var steps = []string{`
CREATE TABLE sessions (
	n       INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	title   TEXT NOT NULL,
	folder  TEXT NOT NULL,
	client  TEXT NOT NULL,
	parent  TEXT NOT NULL,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	turns   INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_updated ON sessions (updated);
CREATE TABLE events (
	n       INTEGER PRIMARY KEY,
	session INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
	seq     INTEGER NOT NULL,
	turn    INTEGER NOT NULL,
	type    TEXT NOT NULL,
	data    TEXT NOT NULL,
	UNIQUE (session, seq)
) STRICT;
CREATE TABLE leases (
	session   INTEGER PRIMARY KEY REFERENCES sessions (n) ON DELETE CASCADE,
	holder    TEXT NOT NULL,
	pid       INTEGER NOT NULL,
	started   TEXT NOT NULL,
	machine   TEXT NOT NULL,
	heartbeat INTEGER NOT NULL
) STRICT;
CREATE TABLE spend (
	at      INTEGER NOT NULL,
	session TEXT NOT NULL,
	usd     REAL NOT NULL
) STRICT;
CREATE INDEX spend_at ON spend (at);
CREATE INDEX spend_session ON spend (session);
CREATE VIRTUAL TABLE session_text USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
`, `
ALTER TABLE sessions ADD COLUMN mode TEXT NOT NULL DEFAULT 'policy';
`}
