package client

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// maxMicros is the last moment that is kept, in microseconds: what a double holds.
const maxMicros = 1<<53 - 1

// A ScriptClock converts times of this process to arguments of scripts, and back. Only the clock
// of a server decides: so times go to a server, and come back, as how far off they are now,
// for the clocks of the processes that share a store differ. With the caller's time, which
// is for tests, the clock of all servers is the latest time that AdvanceTo was given.
type ScriptClock struct {
	usesCallerTime bool

	mu                 sync.Mutex // guards latestCallerMicros
	latestCallerMicros int64
}

// UsesCallerTime reports whether the time is the latest that AdvanceTo was given.
func (c *ScriptClock) UsesCallerTime() bool { return c.usesCallerTime }

// timeToMicros returns t in microseconds since 1970, rounded up: nothing is due before
// its time. Before 1970 there is nothing.
func timeToMicros(t time.Time) int64 {
	if t.Unix() < 0 {
		return 0
	}
	if t.Unix() > maxMicros/1_000_000 {
		return maxMicros
	}
	us := t.UnixMicro()
	if t.Nanosecond()%1000 > 0 {
		us++
	}
	return us
}

// DurationArg returns d as an argument of a script: in microseconds, rounded up.
func DurationArg(d time.Duration) string {
	us := d.Microseconds()
	if d%time.Microsecond > 0 {
		us++
	}
	return strconv.FormatInt(us, 10)
}

// AdvanceTo sets the caller's time, unless a later one was set.
func (c *ScriptClock) AdvanceTo(now time.Time) {
	if !c.usesCallerTime || now.Unix() < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latestCallerMicros = max(c.latestCallerMicros, now.UnixMicro()) // rounded down: nothing is due before its time
}

// nowArg returns the first argument of a script.
func (c *ScriptClock) nowArg() string {
	if !c.usesCallerTime {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return strconv.FormatInt(c.latestCallerMicros, 10)
}

// CallerOrLocalMicros returns now in microseconds if the clock uses the caller's time, and
// otherwise the time of this process, which may have gone on since.
func (c *ScriptClock) CallerOrLocalMicros(now time.Time) int64 {
	if c.usesCallerTime {
		return now.UnixMicro()
	}
	return time.Now().UnixMicro()
}

// TimeArg returns a time as an argument of a script; empty if it is before 1970.
func (c *ScriptClock) TimeArg(t time.Time) string {
	switch {
	case t.Unix() < 0: // none
		return ""
	case c.usesCallerTime:
		return strconv.FormatInt(timeToMicros(t), 10)
	}
	d := time.Until(t)
	if d == math.MaxInt64 {
		return strconv.FormatInt(maxMicros, 10)
	}
	return DurationArg(d)
}

// Until returns how long it is until t.
func (c *ScriptClock) Until(t time.Time) time.Duration {
	if !c.usesCallerTime {
		return time.Until(t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Sub(time.UnixMicro(c.latestCallerMicros))
}

// ToLocalMicros converts a time of a server whose clock says now to microseconds of the
// clock of this process. Never stays Never.
func (c *ScriptClock) ToLocalMicros(at, now int64) int64 {
	switch {
	case at == Never:
		return Never
	case c.usesCallerTime:
		return at
	}
	return max(0, time.Now().UnixMicro()+1+at-now)
}

// ToLocalTime is ToLocalMicros for a time of which 0 is none.
func (c *ScriptClock) ToLocalTime(at, now int64) time.Time {
	if at <= 0 {
		return time.Time{}
	}
	return MicrosToTime(c.ToLocalMicros(at, now))
}

// LocalLeaseExpiry returns when a lease runs out that was asked for at sentAt. It was given
// later, and so runs out on the server no earlier.
func (c *ScriptClock) LocalLeaseExpiry(expires, now int64, sentAt time.Time) time.Time {
	if c.usesCallerTime {
		return MicrosToTime(expires)
	}
	return sentAt.Add(MicrosToDuration(expires - now))
}

// LocalMicrosArg returns a time of this process, in microseconds, as an argument of a script.
func (c *ScriptClock) LocalMicrosArg(us int64) string {
	if !c.usesCallerTime {
		us -= time.Now().UnixMicro()
	}
	return strconv.FormatInt(us, 10)
}

// MicrosToDuration returns us microseconds, or the nearest that a time.Duration holds.
func MicrosToDuration(us int64) time.Duration {
	const limit = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(max(-limit, min(us, limit))) * time.Microsecond
}

// MicrosToTime returns a time in microseconds as a time.Time, the zero one for Never.
func MicrosToTime(us int64) time.Time {
	if us == Never {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
