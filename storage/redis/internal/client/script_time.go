package client

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// maxMicros is the latest time that is stored, in microseconds: the largest integer up to which Lua's
// doubles are exact.
const maxMicros = 1<<53 - 1

// A ScriptClock converts times of this process to arguments of scripts, and times of servers back.
// The server's clock decides. Because clocks of the processes that share a store differ, a time goes
// to a server, and comes back, as its offset from now. With the caller's time, which is for tests, all
// times are absolute, and the clock of all servers is the latest time given to AdvanceTo.
type ScriptClock struct {
	usesCallerTime bool

	mu                 sync.Mutex // guards latestCallerMicros
	latestCallerMicros int64
}

// UsesCallerTime reports whether the time is the latest given to AdvanceTo.
func (c *ScriptClock) UsesCallerTime() bool { return c.usesCallerTime }

// timeToMicros returns t in microseconds since 1970, between 0 and maxMicros. It rounds up, so that
// nothing is due before its time.
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

// DurationArg returns d in microseconds, rounded up, as an argument of a script.
func DurationArg(d time.Duration) string {
	us := d.Microseconds()
	if d%time.Microsecond > 0 {
		us++
	}
	return strconv.FormatInt(us, 10)
}

// AdvanceTo sets the caller's time, unless a later one was set. Without the caller's time it does
// nothing.
func (c *ScriptClock) AdvanceTo(now time.Time) {
	if !c.usesCallerTime || now.Unix() < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// UnixMicro rounds down, so that nothing is due before its time.
	c.latestCallerMicros = max(c.latestCallerMicros, now.UnixMicro())
}

// nowArg returns the first argument of every script: the caller's time, or an empty string.
func (c *ScriptClock) nowArg() string {
	if !c.usesCallerTime {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return strconv.FormatInt(c.latestCallerMicros, 10)
}

// CallerOrLocalMicros returns now in microseconds if the clock uses the caller's time, and otherwise
// the current time of this process, which may be later than now.
func (c *ScriptClock) CallerOrLocalMicros(now time.Time) int64 {
	if c.usesCallerTime {
		return now.UnixMicro()
	}
	return time.Now().UnixMicro()
}

// TimeArg returns a time as an argument of a script: an offset from now in microseconds, rounded up,
// or an absolute time with the caller's time. It returns an empty string for a time before 1970, such
// as the zero time.
func (c *ScriptClock) TimeArg(t time.Time) string {
	switch {
	case t.Unix() < 0:
		return ""
	case c.usesCallerTime:
		return strconv.FormatInt(timeToMicros(t), 10)
	}
	d := time.Until(t)
	if d == math.MaxInt64 { // further away than a Duration holds
		return strconv.FormatInt(maxMicros, 10)
	}
	return DurationArg(d)
}

// Until returns the duration until t, by the caller's time or by that of this process.
func (c *ScriptClock) Until(t time.Time) time.Duration {
	if !c.usesCallerTime {
		return time.Until(t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Sub(time.UnixMicro(c.latestCallerMicros))
}

// ToLocalMicros converts the time at of a server, whose clock showed now, to microseconds of this
// process's clock. Never stays Never.
func (c *ScriptClock) ToLocalMicros(at, now int64) int64 {
	switch {
	case at == Never:
		return Never
	case c.usesCallerTime:
		return at
	}
	return max(0, time.Now().UnixMicro()+1+at-now) // UnixMicro rounds down: add 1 to round up
}

// ToLocalTime is ToLocalMicros for a time that is 0 if it is not set. It returns the zero time then.
func (c *ScriptClock) ToLocalTime(at, now int64) time.Time {
	if at <= 0 {
		return time.Time{}
	}
	return MicrosToTime(c.ToLocalMicros(at, now))
}

// LocalLeaseExpiry returns when a lease that was requested at sentAt expires, by this process's clock.
// The server gave the lease after sentAt, and so lets it expire no earlier.
func (c *ScriptClock) LocalLeaseExpiry(expires, now int64, sentAt time.Time) time.Time {
	if c.usesCallerTime {
		return MicrosToTime(expires)
	}
	return sentAt.Add(MicrosToDuration(expires - now))
}

// LocalMicrosArg returns a time of this process's clock, in microseconds, as an argument of a script.
func (c *ScriptClock) LocalMicrosArg(us int64) string {
	if !c.usesCallerTime {
		us -= time.Now().UnixMicro()
	}
	return strconv.FormatInt(us, 10)
}

// MicrosToDuration returns us microseconds, or the nearest value that a time.Duration holds.
func MicrosToDuration(us int64) time.Duration {
	const limit = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(max(-limit, min(us, limit))) * time.Microsecond
}

// MicrosToTime returns a time in microseconds since 1970 as a time.Time in UTC. It returns the zero
// time for Never.
func MicrosToTime(us int64) time.Time {
	if us == Never {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
