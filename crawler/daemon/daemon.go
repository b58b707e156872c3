package daemon

import (
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// Exit codes of a command. Scripts rely on them.
const (
	ExitDone        = command.ExitDone        // success; a limit of pages or bytes may have ended the crawl
	ExitFailed      = command.ExitFailed      // an error occurred
	ExitUsage       = command.ExitUsage       // wrong usage or configuration; no request was sent
	ExitCheckFailed = command.ExitCheckFailed // a check failed
	// a signal, the limit of time, or the reader of a crawl's output stopped the command; --resume continues it
	ExitStopped = command.ExitStopped
)

// A PageHandlerRegistry holds the page handlers of a program, by the name that a project file gives in
// its handler field. collyfetch.NamedCallbacks, callbacks of colly, implements it. A program without
// handlers passes nil, and does not link colly.
type PageHandlerRegistry interface {
	// Names returns the names of the handlers, sorted.
	Names() []string
	// Attach makes c handle its pages with the named handler, one of Names. It sets c.Handler and, if
	// the handler fetches pages in another way, c.Fetcher. fetcher fetches pages over HTTP; the body of
	// a request may have at most maxRequestBody bytes. Attach is called once for each run of a crawl,
	// before the run begins, and may be called for several crawls at the same time.
	Attach(name string, c *crawler.Crawler, fetcher *httpfetch.Fetcher, maxRequestBody int64)
}

// Main runs the decorum command with the handlers of h, which may be nil, and the arguments of the
// process. It ends the process with one of the exit codes.
func Main(h PageHandlerRegistry) { cli.Main(h) }

// Run runs the decorum command with args and the handlers of h, and returns its exit code, for a program
// that continues afterwards. While it runs, an interrupt, SIGTERM or SIGHUP stops the command; decorum
// serve reloads its project files at SIGHUP. It leaves the standard logger alone.
func Run(h PageHandlerRegistry, args ...string) int { return cli.Run(h, args...) }

// LimitMemory limits the memory of the process to nine tenths of its control group's limit, if it has one,
// unless GOMEMLIMIT is set. Main calls it; a program that calls Run may do so.
func LimitMemory() { cli.LimitMemory() }
