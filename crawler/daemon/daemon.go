package daemon

import (
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
)

// Exit codes. Scripts rely on them.
const (
	ExitDone        = cli.ExitDone        // all is well
	ExitFailed      = cli.ExitFailed      // something went wrong
	ExitUsage       = cli.ExitUsage       // wrong usage or configuration: nothing was sent
	ExitCheckFailed = cli.ExitCheckFailed // a check says no
	ExitStopped     = cli.ExitStopped     // stopped by a limit or a signal; --resume goes on
)

// NamedCallbacks are the callbacks of a program, by the name that a project's handler
// field calls them by. Each registers its callbacks on the Collector of one
// crawl, which may be called by many workers at a time.
type NamedCallbacks map[string]func(*collyfetch.Collector)

// Main is the decorum command, with the callbacks of h: it runs what the command
// line asks for, and ends the process.
func Main(h NamedCallbacks) { cli.Main(engine.NamedCallbacks(h)) }

// Run is Main for a program that has more to do: it runs what args ask for, and
// returns the exit code. Interrupts and SIGTERM stop what it runs. The standard
// logger stays the program's own.
func Run(h NamedCallbacks, args ...string) int { return cli.Run(engine.NamedCallbacks(h), args...) }

// TuneGC has the garbage collector run less often than Go would, as Main does, unless the
// environment sets GOGC; and it bounds the memory of the process by its control group,
// unless GOMEMLIMIT is set.
func TuneGC() { cli.TuneGC() }
