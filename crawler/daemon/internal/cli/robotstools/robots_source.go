package robotstools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// addFetchFlags adds the flags of a command that may fetch robots.txt files.
func (q *checkOptions) addFetchFlags(fs *pflag.FlagSet) {
	fs.StringVar(&q.contact, "contact", "https://"+decorum.ModulePath,
		"send `URL`, a web page or mailto:, as the contact of the requests")
	fs.StringArrayVar(&q.connectToRules, "connect-to", nil,
		"connect to HOST2:PORT2 instead of HOST:PORT: `HOST:PORT:HOST2:PORT2` as with curl; repeatable (default: none)")
	fs.BoolVar(&q.allowPrivate, "allow-private", false, "allow connections to loopback and private addresses")
}

// hasURLScheme reports whether name is a URL, rather than the path of a file.
func hasURLScheme(name string) bool { return strings.Contains(name, "://") }

// originOfRobotsURL returns the origin whose robots.txt is at address. It returns a usage error,
// which begins with argName, if address is not the URL of a robots.txt.
func originOfRobotsURL(argName, address string) (decorum.Origin, error) {
	u, err := decorum.ParseURL(address)
	if err != nil || u != u.Origin().RobotsURL() { // LOC-06
		return decorum.Origin{}, usage.Errorf("%s: %q is not the URL of a robots.txt; expected https://host/robots.txt",
			argName, address)
	}
	return u.Origin(), nil
}

// maxRobotsFileBytes is how many bytes of a file on disk are read, up to the end of a line. It is
// far more than a crawler reads, so that robots lint can report a file that is too large.
const maxRobotsFileBytes = 32 * robots.MaxFileBytes

// readRobotsFile reads the robots.txt in the file name, as readRobotsText does.
func readRobotsFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the robots.txt: %w", err)
	}
	defer f.Close()
	return readRobotsText(f)
}

// readRobotsText reads a robots.txt from in. It cuts a text that is longer than maxRobotsFileBytes at
// the end of a line.
func readRobotsText(in io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, maxRobotsFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the robots.txt: %w", err)
	}
	if end := bytes.LastIndexAny(body[:min(len(body), maxRobotsFileBytes)], "\r\n"); len(body) > maxRobotsFileBytes &&
		end > robots.MaxFileBytes {
		body = body[:end+1]
	}
	return body, nil
}

// loadRobotsBody reads the robots.txt name, a file or a URL.
func (q checkOptions) loadRobotsBody(ctx context.Context, dialect robots.Dialect, name string) ([]byte, error) {
	if !hasURLScheme(name) {
		return readRobotsFile(name)
	}
	o, err := originOfRobotsURL("URL", name)
	if err != nil {
		return nil, err
	}
	c, err := q.newOnDemandCrawl(robots.Agent{}, dialect)
	if err != nil {
		return nil, err
	}
	// FetchRobots follows redirects. v is nil or not OK if the site has no robots.txt.
	v, err := c.FetchRobots(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case v == nil || !v.OK():
		return nil, fmt.Errorf("there is no %s", o.RobotsURL())
	}
	return v.Response.Body, nil
}

// newOnDemandCrawl returns a crawl that fetches robots.txt files and evaluates them for agent.
func (q checkOptions) newOnDemandCrawl(agent robots.Agent, dialect robots.Dialect) (*crawler.OnDemandCrawl, error) {
	d := q.newProjectFromFlags()
	if err := d.Check(); err != nil {
		return nil, err
	}
	return engine.NewOnDemandCrawl(&d.Project, gate.Config{Agent: agent, Dialect: dialect, SessionStart: time.Now()})
}

// newProjectFromFlags returns a project with the settings of the flags of addFetchFlags. Its only
// seed makes the project valid; no command visits it.
func (q checkOptions) newProjectFromFlags() *project.File {
	d := project.NewFile()
	d.Agent.Contact, d.Seeds = q.contact, []string{"https://" + decorum.ModulePath}
	d.Fetch.AllowPrivate, d.Fetch.ConnectToRules = q.allowPrivate, q.connectToRules
	d.CommandLineArgByField["agent.contact"], d.CommandLineArgByField["fetch.connect_to"] = "--contact", "--connect-to"
	return d
}

// openFileOrStdin opens the file name; "-" is stdin. what names the contents in errors. From then on,
// signals kill the process: a read from standard input cannot be cancelled, and the commands that call
// openFileOrStdin have nothing to clean up.
func openFileOrStdin(stdin io.Reader, name, what string) (io.ReadCloser, error) {
	signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the %s: %w", what, err)
	}
	return f, nil
}
