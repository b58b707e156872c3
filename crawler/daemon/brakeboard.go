package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/politeness"
)

// The brakes of processes that share a prefix in Redis are on its board, each by its
// host. A daemon keeps them in its file as well, for its other projects, and for the
// time before it has seen the board.

// encodeSharedBrake is a brake as boards have it.
func encodeSharedBrake(b api.Brake) string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // it is made of what can be written
	}
	return string(text)
}

// brakeOf reads a brake of a board; false if it makes no sense, or does not hold any
// more.
func brakeOf(encoded string, now time.Time) (politeness.Brake, bool) {
	var b api.Brake
	if json.Unmarshal([]byte(encoded), &b) != nil {
		return politeness.Brake{}, false
	}
	brake := politeBrake(b)
	return brake, brake.Validate() == nil && !brake.Expired(now)
}

// heedBoard is the heed of a daemon: it has the brakes of a board hold. What is missing
// there was put on here while it was out of reach, or before there was one.
func (s *supervisor) heedBoard(key string, board map[string]string, outdated func() bool) (missing map[string]string, ok bool) {
	s.braking.Lock() // which is held by who posts
	defer s.braking.Unlock()
	if outdated() {
		return nil, false
	}
	before := s.wishes.shared(key)
	if board == nil {
		board = before
	}
	ours := map[string]string{}
	for _, b := range s.brakes.All() {
		ours[b.Host] = encodeSharedBrake(shownBrake(b))
	}
	changed := !maps.Equal(before, board)
	if changed {
		s.takeOver(before, board, ours)
	}
	missing = map[string]string{}
	for host, encoded := range ours {
		if board[host] != encoded {
			missing[host] = encoded
		}
	}
	if changed {
		s.noteBoard(key, board)
	}
	return missing, true
}

// takeOver puts on, and lifts, what others have since a board was seen last. What was
// put on here meanwhile stays if it stops a host.
func (s *supervisor) takeOver(before, board, ours map[string]string) {
	now := time.Now()
	for host, encoded := range before {
		if _, on := board[host]; !on && ours[host] == encoded && s.brakes.Lift(host) {
			if b, ok := brakeOf(encoded, now); ok {
				s.tellBrake(shownBrake(b), "lifted")
			}
			delete(ours, host)
		}
	}
	for host, encoded := range board {
		b, ok := brakeOf(encoded, now)
		mine, stops := brakeOf(ours[host], now)
		waits := ours[host] != "" && ours[host] != before[host] // it is not on the board yet
		if !ok || b.Host != host || encoded == ours[host] || waits && stops && mine.Stop {
			continue
		}
		if s.brakes.Set(b) == nil {
			s.tellBrake(shownBrake(b), brakeText(shownBrake(b)))
			ours[host] = encoded
		}
	}
}

// noteBoard keeps what is on a board, and which brakes are on.
func (s *supervisor) noteBoard(key string, board map[string]string) {
	err := s.wishes.change(func(t *daemonState) {
		if t.Shared == nil {
			t.Shared = map[string]map[string]string{}
		}
		t.Shared[key] = board
	})
	if err = errors.Join(err, s.keepBrakes()); err != nil {
		s.app.log.Warn("the brakes that other processes have put on may not survive the daemon here", "error", err)
	}
}

// replaceBrakes has the brakes of a board hold, and no others.
func replaceBrakes(brakes *politeness.Brakes, board map[string]string, log *slog.Logger) {
	now := time.Now()
	var all []politeness.Brake
	for host, encoded := range board {
		b, ok := brakeOf(encoded, now)
		if !ok || b.Host != host {
			continue
		}
		all = append(all, b)
		log.Warn("brake", "host", b.Host, "domain", b.Domain, "what", brakeText(shownBrake(b)), "by", b.By, "reason", b.Reason)
	}
	if err := brakes.Replace(all); err != nil { // all of them are valid
		log.Error("the brakes of other processes are not followed", "error", err)
	}
}

// postBrake puts a brake on the boards of all commons, or, if line is empty, takes it
// off those that it is on; that is, if was is not empty, where it is that.
func (s *supervisor) postBrake(ctx context.Context, host, encoded, was string) (err error) {
	for _, c := range s.allCommons() {
		board := maps.Clone(s.wishes.shared(c.key))
		if _, on := board[host]; encoded == "" && !on {
			continue
		}
		if e := c.post(ctx, host, encoded, was); e != nil {
			err = errors.Join(err, e)
			continue
		}
		if board == nil {
			board = map[string]string{}
		}
		board[host] = encoded
		if encoded == "" {
			delete(board, host)
		}
		s.noteBoard(c.key, board)
	}
	return err
}

// commonsOf returns the commons that a project belongs to, nil if it has none.
func (s *supervisor) commonsOf(ed *edition) *commons {
	r := ed.project.Store.Redis
	if !r.isUsed() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.commonsKey()
	c := s.commons[key]
	if c == nil {
		c = startCommons(r, ed.confined, func(board map[string]string, outdated func() bool) (map[string]string, bool) {
			return s.heedBoard(key, board, outdated)
		}, s.app.log)
		s.commons[key] = c
	}
	return c
}

func (s *supervisor) allCommons() (all []*commons) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commons {
		all = append(all, c)
	}
	return all
}

// tendCommons joins the commons of all projects, also of those that do not run:
// brakes are for all. It leaves those that are no project's any more.
func (s *supervisor) tendCommons() {
	used := map[string]bool{}
	for _, r := range s.all() {
		if ed := r.edition(); ed != nil && s.commonsOf(ed) != nil {
			used[ed.project.Store.Redis.commonsKey()] = true
		}
	}
	s.mu.Lock()
	var left []*commons
	for key, c := range s.commons {
		if !used[key] {
			left = append(left, c)
			delete(s.commons, key)
		}
	}
	s.mu.Unlock()
	for _, c := range left {
		s.closeCommons(c)
	}
}

func (s *supervisor) closeCommons(c *commons) {
	if err := c.Close(); err != nil {
		s.app.log.Warn("what processes share in Redis is not closed in order", "redis", c.key, "error", err)
	}
}
