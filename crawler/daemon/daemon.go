package daemon

import (
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// Exit codes. Scripts rely on them.
const (
	ExitDone        = command.ExitDone        // all is well
	ExitFailed      = command.ExitFailed      // something went wrong
	ExitUsage       = command.ExitUsage       // wrong usage or configuration: nothing was sent
	ExitCheckFailed = command.ExitCheckFailed // a check says no
	ExitStopped     = command.ExitStopped     // stopped by a limit or a signal; --resume goes on
)

// PageHandlerRegistry are the ways in which a program handles pages, by the name that a project's handler
// field calls them by. collyfetch.NamedCallbacks, callbacks of colly, are PageHandlerRegistry. A program
// that has none passes nil, and links no colly.
type PageHandlerRegistry interface {
	// Names returns the names, sorted.
	Names() []string
	// Attach has pages of c handled by what has that name, one of Names: it sets c.Handler
	// and, if pages are to be fetched otherwise, c.Fetcher. fetcher fetches pages by HTTP; a
	// request may have a body of at most maxRequestBody bytes. Attach is called once for each
	// run of a crawl, before it begins, and may be called for several crawls at a time.
	Attach(name string, c *crawler.Crawler, fetcher *httpfetch.Fetcher, maxRequestBody int64)
}

// Main is the decorum command, with the handlers of h: it runs what the command
// line asks for, and ends the process.
func Main(h PageHandlerRegistry) { cli.Main(h) }

// Run is Main for a program that has more to do: it runs what args ask for, and
// returns the exit code. Interrupts and SIGTERM stop what it runs. The standard
// logger stays the program's own.
func Run(h PageHandlerRegistry, args ...string) int { return cli.Run(h, args...) }

// TuneGC has the garbage collector run less often than Go would, as Main does, unless the
// environment sets GOGC; and it bounds the memory of the process by its control group,
// unless GOMEMLIMIT is set.
func TuneGC() { cli.TuneGC() }
