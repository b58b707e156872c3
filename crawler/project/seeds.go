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

// AllSeeds yields the project's seeds, including those of its seed files, which it opens with open.
// It ends after the first error: a seed that is not a URL, or a file that cannot be read. It reads
// seed files line by line and keeps no list, because they may be long.
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

// errStopReading ends readSeedFile after yield has returned false.
var errStopReading = errors.New("enough seeds")

// readSeedFile yields the URLs of one file, one per line; # begins a comment. Its errors give the
// number of the line but do not quote it: a user who may name a file may not be allowed to read it.
func (p *Project) readSeedFile(open inputfile.OpenFunc, name string, yield func(decorum.URL, error) bool) error {
	// FirstSeedPerOrigin and the crawl each read the seeds, so a pipe would be empty the second
	// time.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return usage.Errorf("cannot read the seeds: %s is not a regular file, and seeds are read twice; write them "+
			"to one", name)
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

// ParseSeedLine returns a line of a seed file without byte order mark, blanks and comment. A comment
// begins with # at the start of the line or after a blank.
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

// FirstSeedPerOrigin returns the first seed of each origin, which is all that the scope needs. It
// reads every seed, so that an error in one is found before the crawl sends a request. It opens seed
// files with open. Without any seed it returns a *usage.Error.
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
		return nil, usage.Errorf("nothing to crawl: the seed files contain no URL")
	}
	return found, nil
}

// errProxiedFTP refuses ftp URLs of a crawl with a proxy, because ftp connections would bypass it.
var errProxiedFTP = errors.New("ftp cannot go through fetch.proxy")

// errFTPWithHandler refuses ftp URLs of a crawl with callbacks, which would never see them.
var errFTPWithHandler = errors.New("the callbacks of a handler see http and https only")

// seedURLProblem returns why s cannot be a seed, or nil (LOC-18). The error does not repeat s.
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

// errSeedNotURL refuses a seed that is not a URL.
var errSeedNotURL = errors.New("is not a URL the crawl can visit: expected https://host/path")
