package cli

import (
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// addIdleConnectionsFlag adds --idle-connections, which sets limit. It is a setting of the process, not
// of a project: the connections of all projects count together.
func addIdleConnectionsFlag(fs *pflag.FlagSet, limit *int) {
	fs.IntVar(limit, "idle-connections", defaultIdleConns,
		"keep at most `N` connections open for later visits; beyond that, close those to the hosts whose\n"+
			"next visit is farthest away (-1: three eighths of the file descriptors that the process may\n"+
			"open, within an eighth of its memory)")
}

// defaultIdleConns is the value of --idle-connections that stands for httpfetch.DefaultIdleConnsLimit.
const defaultIdleConns = -1

// initIdleConns creates the limit of idle connections that all crawls share.
func (a *program) initIdleConns(limit int) error {
	switch {
	case limit == defaultIdleConns:
		a.IdleConns = httpfetch.NewDefaultIdleConns()
	case limit < 0:
		return usage.Errorf("--idle-connections: %d: expected a number of connections, or -1 for the default", limit)
	default:
		a.IdleConns = httpfetch.NewIdleConns(limit)
	}
	return nil
}
