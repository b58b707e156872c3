package server

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/connlimit"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// listenerConnectionLimits limit the connections of a daemon's listeners. The defaults leave most of the
// descriptors of the process to the crawl.
type listenerConnectionLimits struct {
	connlimit.Limits     // for the listener of the API
	maxBot           int // replaces MaxUntrusted for the listener of the bot page
}

// addFlags defines the flags that set c.
func (c *listenerConnectionLimits) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&c.MaxTrusted, "connections", 0,
		"keep `N` connections of callers with a token open (0: 4096, but a quarter of the open files allowed at most)")
	fs.IntVar(&c.MaxUntrusted, "stranger-connections", 0,
		"keep `N` connections of callers without a token open; a new one closes the one that has been idle longest "+
			"(0: 1024, but an eighth of the open files allowed at most)")
	fs.IntVar(&c.maxBot, "bot-connections", 0,
		"the same for --bot-listen: `N` connections (0: 512, but a sixteenth of the open files allowed at most)")
	fs.IntVar(&c.MaxUntrustedPerNetwork, "connections-per-address", 64,
		"keep `N` connections without a token open from one address, of IPv6 one /64; raise it behind a reverse proxy")
	c.UntrustedRequestTimeout = 10 * time.Second
	fs.Var(DurationFlag{(*project.Duration)(&c.UntrustedRequestTimeout)}, "stranger-time",
		"close a connection without a token that sends no request for `TIME`")
}

// check returns an error of usage for a negative limit, and for limits that together exceed half of the
// descriptors that the process may open.
func (c *listenerConnectionLimits) check() error {
	for flag, n := range map[string]int{"connections": c.MaxTrusted, "stranger-connections": c.MaxUntrusted,
		"bot-connections": c.maxBot, "connections-per-address": c.MaxUntrustedPerNetwork,
		"stranger-time": int(c.UntrustedRequestTimeout)} {
		if n < 0 {
			return usage.Errorf("--%s: it must not be negative", flag)
		}
	}
	maxFiles := connlimit.MaxDescriptors()
	effective := c.withDefaults(maxFiles)
	if sum := uint64(effective.MaxTrusted + effective.MaxUntrusted + effective.maxBot); maxFiles > 0 &&
		sum > maxFiles/2 {
		return usage.Errorf("--connections, --stranger-connections and --bot-connections come to %d, "+
			"and the process may have %d files open; the crawl needs half of these: "+
			"set lower limits, or allow more files (ulimit -n, LimitNOFILE)", sum, maxFiles)
	}
	return nil
}

// withDefaults returns c with defaults for the limits that are 0, for a process that may open maxFiles
// files; 0 means that this number is unknown.
func (c *listenerConnectionLimits) withDefaults(maxFiles uint64) listenerConnectionLimits {
	effective := *c
	for _, l := range []struct {
		limit    *int
		standard int    // the default of a process with enough descriptors
		share    uint64 // the default is at most 1/share of maxFiles
	}{{&effective.MaxTrusted, 4096, 4}, {&effective.MaxUntrusted, 1024, 8}, {&effective.maxBot, 512, 16}} {
		if *l.limit != 0 {
			continue
		}
		*l.limit = l.standard
		if maxFiles > 0 {
			*l.limit = int(max(1, min(uint64(l.standard), maxFiles/l.share)))
		}
	}
	return effective
}
