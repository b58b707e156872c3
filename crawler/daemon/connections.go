package daemon

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// connections are the limits on the connections of a daemon's listeners. The defaults
// leave most of the descriptors of the process to the crawl.
type connections struct {
	trusted, strangers, bot, perAddress int
	strangerTime                        Duration
}

// The defaults for processes with enough descriptors.
const (
	defaultTrusted      = 4096
	defaultStrangers    = 1024
	defaultBot          = 512
	defaultPerAddress   = 64
	defaultStrangerTime = Duration(10 * time.Second)
)

func (c *connections) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&c.trusted, "connections", 0,
		"keep `N` connections of callers with a token open (0: 4096, but a quarter of the open files allowed at most)")
	fs.IntVar(&c.strangers, "stranger-connections", 0,
		"keep `N` connections of callers without a token open; a new one closes the one that has been idle longest "+
			"(0: 1024, but an eighth of the open files allowed at most)")
	fs.IntVar(&c.bot, "bot-connections", 0,
		"the same for --bot-listen: `N` connections (0: 512, but a sixteenth of the open files allowed at most)")
	fs.IntVar(&c.perAddress, "connections-per-address", defaultPerAddress,
		"keep `N` connections without a token open from one address, of IPv6 one /64; raise it behind a reverse proxy")
	c.strangerTime = defaultStrangerTime
	fs.Var(timeFlag{&c.strangerTime}, "stranger-time",
		"close a connection without a token that sends no request for `TIME`")
}

// check refuses limits that cannot work.
func (c *connections) check() error {
	for flag, n := range map[string]int{"connections": c.trusted, "stranger-connections": c.strangers,
		"bot-connections": c.bot, "connections-per-address": c.perAddress, "stranger-time": int(c.strangerTime)} {
		if n < 0 {
			return usage("--%s: it must not be negative", flag)
		}
	}
	files := maxDescriptors()
	set := c.withDefaults(files)
	if sum := uint64(set.trusted + set.strangers + set.bot); files > 0 && sum > files/2 {
		return usage("--connections, --stranger-connections and --bot-connections come to %d, "+
			"and the process may have %d files open, half of which the crawl needs: "+
			"set lower limits, or allow more files (ulimit -n, LimitNOFILE)", sum, files)
	}
	return nil
}

// withDefaults returns the limits for a process that may open so many files; 0 means
// unlimited.
func (c *connections) withDefaults(files uint64) connections {
	set := *c
	for _, l := range []struct {
		limit    *int
		standard int
		share    uint64
	}{{&set.trusted, defaultTrusted, 4}, {&set.strangers, defaultStrangers, 8}, {&set.bot, defaultBot, 16}} {
		if *l.limit != 0 {
			continue
		}
		*l.limit = l.standard
		if files > 0 {
			*l.limit = int(max(1, min(uint64(l.standard), files/l.share)))
		}
	}
	return set
}

// ofAPI returns the limits of the listener of the API.
func (c *connections) ofAPI() connlimit.Limits {
	set := c.withDefaults(maxDescriptors())
	return connlimit.Limits{
		Trusted: set.trusted, Strangers: set.strangers,
		PerNetwork: set.perAddress, StrangerTime: time.Duration(set.strangerTime),
	}
}

// ofBot returns the limits of the listener for site owners, who have no tokens.
func (c *connections) ofBot() connlimit.Limits {
	l := c.ofAPI()
	l.Strangers = c.withDefaults(maxDescriptors()).bot
	return l
}
