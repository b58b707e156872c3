package project

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// AllSeeds yields the project's seeds, including those of its seed files, which it opens
// by open. It ends with the first seed that is not a URL, or file that cannot be read.
// It reads lists line by line and never holds them, since they may be long.
func (p *Project) AllSeeds(open inputfile.OpenFunc) iter.Seq2[decorum.URL, error] {
	return func(yield func(decorum.URL, error) bool) {
		for _, s := range p.Seeds {
			if u, err := decorum.ParseURL(s); !yield(u, err) || err != nil {
				return
			}
		}
		for _, name := range p.SeedFiles {
			switch err := p.readSeedFile(open, name, yield); {
			case errors.Is(err, errStopReading):
				return
			case err != nil:
				yield(decorum.URL{}, err)
				return
			}
		}
	}
}

// errStopReading ends the reading of seeds that nobody wants.
var errStopReading = errors.New("enough seeds")

// readSeedFile yields the URLs of one file: one a line, # begins a comment. Its errors
// give the number of the line and do not quote it: a caller that may name a file may
// not be allowed to read it.
func (p *Project) readSeedFile(open inputfile.OpenFunc, name string, yield func(decorum.URL, error) bool) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return usage.Errorf("cannot read the seeds: %s is no regular file, and seeds are read twice; write them to one", name)
	}
	f, err := open(name)
	if err != nil {
		return usage.Errorf("cannot read the seeds: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 1
	for ; lines.Scan(); n++ {
		text := ParseSeedLine(lines.Text())
		if text == "" {
			continue
		}
		if err := p.seedURLProblem(text); err != nil {
			return usage.Errorf("%s:%d: the line %w", name, n, err)
		}
		if u, err := decorum.ParseURL(text); !yield(u, err) {
			return errStopReading
		}
	}
	if err := lines.Err(); err != nil {
		return usage.Errorf("cannot read the seeds: %s:%d: %w", name, n, plaintext.DescribeScanError(err))
	}
	return nil
}

// ParseSeedLine returns what a line of a seed file names: a comment begins at its
// start or after a blank.
func ParseSeedLine(line string) string {
	line = strings.TrimPrefix(line, plaintext.ByteOrderMark)
	for _, mark := range []string{" #", "\t#"} {
		line, _, _ = strings.Cut(line, mark)
	}
	if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
		return ""
	}
	return line
}

// FirstSeedPerOrigin returns one seed of each origin: all that the scope needs to know. It
// reads every seed, so a mistake in one is found before anything is sent. Seed files are
// opened by open.
func (p *Project) FirstSeedPerOrigin(open inputfile.OpenFunc) ([]decorum.URL, error) {
	var found []decorum.URL
	seen := map[decorum.Origin]bool{}
	for u, err := range p.AllSeeds(open) {
		if err != nil {
			return nil, err
		}
		if o := u.Origin(); !seen[o] {
			seen[o] = true
			found = append(found, u)
		}
	}
	if len(found) == 0 {
		return nil, usage.Errorf("nothing to crawl: the seed files name no URL")
	}
	return found, nil
}

// errProxiedFTP refuses what would go around the proxy.
var errProxiedFTP = errors.New("ftp cannot go through fetch.proxy")

// errFTPWithHandler refuses what callbacks would not be told of.
var errFTPWithHandler = errors.New("the callbacks of a handler see http and https only")

// seedURLProblem returns why the crawl cannot begin at s, if so (LOC-18), without its text.
func (p *Project) seedURLProblem(s string) error {
	u, err := decorum.ParseURL(s)
	switch {
	case err != nil:
		return errSeedNotURL
	case !u.Origin().IsHTTP() && p.Fetch.Proxy != "":
		return fmt.Errorf("cannot be visited: %w", errProxiedFTP)
	case !u.Origin().IsHTTP() && p.Handler != "":
		return fmt.Errorf("cannot be visited: %w", errFTPWithHandler)
	}
	return nil
}

// errSeedNotURL is the error for a seed that is not a URL.
var errSeedNotURL = errors.New("is not a URL the crawl can visit: expected https://host/path")
