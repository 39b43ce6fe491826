package session

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"time"
)

const (
	beatEvery = 5 * time.Second
	// staleAfter is how long a process whose life cannot be seen from here keeps
	// its leases without a sign of life.
	staleAfter = 30 * time.Second
)

// process says who holds a lease.
type process struct {
	holder  string // unique to a Store
	pid     int
	started string // when the process began, so that a pid that is used again does not count; "" unknown
	machine string // where pids mean the same; "" unknown
}

func thisProcess() process {
	pid := os.Getpid()
	return process{holder: rand.Text(), pid: pid, started: startTime(pid), machine: machine()}
}

// vacant refuses a session that somebody has open.
func (s *Store) vacant(ctx context.Context, q queryer, id string) error {
	var p process
	var heartbeat int64
	err := q.QueryRowContext(ctx, `SELECT l.holder, l.pid, l.started, l.machine, l.heartbeat FROM leases l
		JOIN sessions s ON s.n = l.session WHERE s.id = ?`, id).
		Scan(&p.holder, &p.pid, &p.started, &p.machine, &heartbeat)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case p.holder == s.process.holder:
		return &BusyError{ID: id}
	case s.expired(p, time.UnixMilli(heartbeat)):
		return nil
	}
	return &BusyError{ID: id, PID: p.pid}
}

// expired reports whether the holder of a lease is gone.
func (s *Store) expired(p process, heartbeat time.Time) bool {
	if p.machine == s.process.machine && p.machine != "" && p.started != "" {
		if startTime(p.pid) != p.started {
			return true
		}
	}
	silent := s.now().Sub(heartbeat)
	return silent > staleAfter || silent < -staleAfter // the clock was set back
}

// lease takes the lease of a session that is vacant.
func (s *Store) lease(tx transaction, n int64) error {
	_, err := tx.exec("INSERT OR REPLACE INTO leases (session, holder, pid, started, machine, heartbeat) VALUES (?, ?, ?, ?, ?, ?)",
		n, s.process.holder, s.process.pid, s.process.started, s.process.machine, s.now().UnixMilli())
	return err
}

// owns refuses a session whose lease is not ours.
func (s *Store) owns(tx transaction, n int64) error {
	var holder string
	err := tx.queryRow("SELECT holder FROM leases WHERE session = ?", n).Scan(&holder)
	if errors.Is(err, sql.ErrNoRows) || err == nil && holder != s.process.holder {
		return ErrLost
	}
	return err
}

func (s *Store) release(n int64) error {
	err := s.change(context.Background(), func(tx transaction) error {
		_, err := tx.exec("DELETE FROM leases WHERE session = ? AND holder = ?", n, s.process.holder)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held--; s.held == 0 && s.stop != nil {
		close(s.stop)
		s.stop = nil
	}
	return err
}

// hold counts a lease that was taken, and lets the heart beat.
func (s *Store) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held++
	s.took = true
	if s.stop == nil {
		s.stop = make(chan struct{})
		stop := s.stop
		s.beaten.Go(func() { s.beat(stop) })
	}
}

func (s *Store) beat(stop <-chan struct{}) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			// One that fails is made up for by the next.
			_ = s.change(context.Background(), func(tx transaction) error {
				_, err := tx.exec("UPDATE leases SET heartbeat = ? WHERE holder = ?", s.now().UnixMilli(), s.process.holder)
				return err
			})
		}
	}
}
