package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/storage/warc"
)

// Answers are those of an archive, by URL. Where they are is held in memory, and
// what they are is not.
type Answers struct {
	places map[string][]answer
	files  []string
}

// An answer is where one is archived, whole or as a revisit to another.
type answer struct {
	date   time.Time // when its request began, to the millisecond
	file   int
	offset int64
	digest string // of the payload
	kind   string // warc.Response or warc.Revisit
	same   bool   // a revisit that had the same payload
}

// OpenAnswers finds the answers in the WARC files of a directory.
func OpenAnswers(dir string) (*Answers, error) {
	var names []string
	for _, pattern := range []string{"*.warc.gz", "*.warc.gz.open"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there are no WARC files in %s", dir)
	}
	a := &Answers{places: map[string][]answer{}, files: names}
	for i := range names {
		if err := a.index(i); err != nil {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	for _, places := range a.places {
		slices.SortStableFunc(places, func(p, q answer) int { return p.date.Compare(q.date) })
	}
	return a, nil
}

// index finds the answers in one file.
func (a *Answers) index(file int) error {
	f, err := os.Open(a.files[file])
	if err != nil {
		return err
	}
	defer f.Close()
	for r := warc.NewReader(f); ; {
		record, err := r.Next()
		if errors.Is(err, io.EOF) || err != nil && strings.HasSuffix(a.files[file], ".open") {
			return nil // who was writing it may have been killed
		}
		if err != nil {
			return err
		}
		if kind := record.Type(); kind != warc.Response && kind != warc.Revisit {
			continue
		}
		date, err := time.Parse(time.RFC3339Nano, record.Header.Get("WARC-Date"))
		if err != nil {
			return fmt.Errorf("a record has no date: %w", err)
		}
		u := record.Header.Get("WARC-Target-URI")
		a.places[u] = append(a.places[u], answer{date: date, file: file, offset: record.Offset,
			digest: record.Header.Get("WARC-Payload-Digest"), kind: record.Type(), same: record.Header.Get("WARC-Profile") == warc.SamePayload})
	}
}

// to returns the bytes of the answer to the request for url of which the answer
// ended then; false if none was archived.
func (a *Answers) to(url string, end time.Time) ([]byte, bool, error) {
	places := a.places[url]
	i := sort.Search(len(places), func(i int) bool { return places[i].date.After(end) }) - 1
	if i < 0 {
		return nil, false, nil
	}
	head, err := a.read(places[i])
	if err != nil || !places[i].same {
		return head, err == nil, err
	}
	for _, p := range slices.Backward(places[:i]) { // its payload is that of an earlier answer
		if p.kind == warc.Response && p.digest == places[i].digest {
			whole, err := a.read(p)
			return whole, err == nil, err
		}
	}
	return nil, false, fmt.Errorf("%s: the answer that a revisit refers to is not archived", url)
}

// read returns the block of a record.
func (a *Answers) read(p answer) ([]byte, error) {
	f, err := os.Open(a.files[p.file])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(p.offset, io.SeekStart); err != nil {
		return nil, err
	}
	record, err := warc.NewReader(f).Next()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.files[p.file], err)
	}
	return io.ReadAll(record.Block)
}
