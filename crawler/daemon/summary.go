package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
)

// summary says what the run has done, and what is left and why.
func (j *job) summary(ctx context.Context) string {
	st := j.crawler.Stats()
	var b strings.Builder
	fmt.Fprintf(&b, "pages: %d (%s), hosts: %d, time: %s, robots.txt: %d, sitemaps: %d\n",
		st.Pages, approximate(st.Bytes), j.hosts.count(), time.Since(j.start).Round(10*time.Millisecond), st.Robots, st.Sitemaps)
	fmt.Fprintf(&b, "errors: %d, retries: %d, given up: %d, blocked by robots.txt: %d, out of scope: %d\n",
		st.Errors, st.Retries, st.Failed, st.Blocked, j.outside.Load())
	if st.Panics > 0 {
		fmt.Fprintf(&b, "callbacks that panicked: %d; the log says where\n", st.Panics)
	}
	c, err := j.frontier.Counts(ctx)
	switch {
	case err != nil:
		fmt.Fprintf(&b, "what is left is not known: %v\n", err)
	case c.Dormant > 0:
		fmt.Fprintf(&b, "left: %d queued, %d of them on hosts that do not answer or ask for too long a delay\n", c.Queued, c.Dormant)
	default:
		fmt.Fprintf(&b, "left: %d queued\n", c.Queued)
	}
	if c.Parked > 0 {
		fmt.Fprintf(&b, "set aside: %d that robots.txt or the scope closes, until that changes\n", c.Parked)
	}
	return b.String()
}

// ending turns the end of a run into an exit.
func (j *job) ending(end error) error {
	for _, stop := range []error{errTime, errSignal, crawler.ErrPages} {
		if errors.Is(end, stop) {
			return &exit{ExitStopped, fmt.Errorf("stopped: %w. Nothing is lost; to go on:\n  %s", end, j.goOn())}
		}
	}
	switch {
	case end == nil, errors.Is(end, frontier.ErrDormant) && j.crawler.Stats().Pages > 0:
		return nil
	case errors.Is(end, frontier.ErrDormant):
		return end
	}
	return fmt.Errorf("%w\nWhat was written is kept; when the cause is removed, go on with:\n  %s", end, j.goOn())
}

// goOn returns the command that goes on with the crawl.
func (j *job) goOn() string {
	command := "decorum"
	if j.project.Handler != "" {
		command = "(this program)" // another has not its callbacks
	}
	return command + " crawl --resume --data " + quote(j.project.Store.Path)
}

// quote returns name as a shell takes it for one word.
func quote(name string) string {
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:+@%=-") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
