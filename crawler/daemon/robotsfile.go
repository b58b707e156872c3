package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// isAddress reports whether what names a robots.txt is a URL and no file.
func isAddress(name string) bool { return strings.Contains(name, "://") }

// robotsOrigin returns whose robots.txt is at an address. what says in errors
// where the address was given.
func robotsOrigin(what, address string) (decorum.Origin, error) {
	u, err := decorum.ParseURL(address)
	if err != nil || u != u.Origin().RobotsURL() { // LOC-06
		return decorum.Origin{}, usage("%s: %q is not the place of a robots.txt; expected https://host/robots.txt", what, address)
	}
	return u.Origin(), nil
}

// largest is how many bytes of a file on disk are looked at, to the end of a line. It
// is far beyond what a crawler reads, so that what is too large can be seen to be.
const largest = 32 * robots.Limit

// readRobots reads a robots.txt on disk.
func readRobots(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the robots.txt: %w", err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the robots.txt: %w", err)
	}
	if end := bytes.LastIndexAny(body[:min(len(body), largest)], "\r\n"); len(body) > largest && end > robots.Limit {
		body = body[:end+1]
	}
	return body, nil
}

// robotsBodies reads robots.txt files by name, each from disk or from the web.
func (q robotsCheck) robotsBodies(ctx context.Context, dialect robots.Dialect, names ...string) ([][]byte, error) {
	bodies := make([][]byte, len(names))
	for i, name := range names {
		var err error
		if bodies[i], err = q.robotsBody(ctx, dialect, name); err != nil {
			return nil, err
		}
	}
	return bodies, nil
}

func (q robotsCheck) robotsBody(ctx context.Context, dialect robots.Dialect, name string) ([]byte, error) {
	if !isAddress(name) {
		return readRobots(name)
	}
	o, err := robotsOrigin("URL", name)
	if err != nil {
		return nil, err
	}
	e, err := newPoliteFetcher(q, robots.Agent{}, dialect)
	if err != nil {
		return nil, err
	}
	return e.body(ctx, o)
}
