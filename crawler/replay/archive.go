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

// An ArchiveIndex finds the answers of an archive by URL. It holds the positions of the records in
// memory, and reads their content from the files.
type ArchiveIndex struct {
	recordLocations map[string][]recordIndexEntry // by URL, in the order of their dates
	files           []string
}

// A recordIndexEntry is the position of a response or revisit record.
type recordIndexEntry struct {
	date               time.Time // when the request began, to the millisecond
	fileIndex          int       // in ArchiveIndex.files
	offset             int64     // in the file
	payloadDigest      string
	recordType         string // warc.TypeResponse or warc.TypeRevisit
	isUnchangedRevisit bool   // a revisit record whose payload is that of an earlier response
}

// OpenArchive indexes the WARC files of a directory, also those that are still being written.
func OpenArchive(dir string) (*ArchiveIndex, error) {
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
	// Index the files, and sort the records of each URL by time.
	a := &ArchiveIndex{recordLocations: map[string][]recordIndexEntry{}, files: names}
	for i := range names {
		if err := a.indexFile(i); err != nil {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	for _, records := range a.recordLocations {
		slices.SortStableFunc(records, func(p, q recordIndexEntry) int { return p.date.Compare(q.date) })
	}
	return a, nil
}

// indexFile indexes the response and revisit records of one file.
func (a *ArchiveIndex) indexFile(file int) error {
	f, err := os.Open(a.files[file])
	if err != nil {
		return err
	}
	defer f.Close()
	for r := warc.NewReader(f); ; {
		record, err := r.Next()
		if errors.Is(err, io.EOF) || err != nil && strings.HasSuffix(a.files[file], ".open") {
			return nil // the last record of an open file may be incomplete after a crash
		}
		if err != nil {
			return err
		}
		if recordType := record.Type(); recordType != warc.TypeResponse && recordType != warc.TypeRevisit {
			continue
		}
		date, err := time.Parse(time.RFC3339Nano, record.Header.Get("WARC-Date"))
		if err != nil {
			return fmt.Errorf("a record has no date: %w", err)
		}
		u := record.Header.Get("WARC-Target-URI")
		a.recordLocations[u] = append(a.recordLocations[u], recordIndexEntry{
			date: date, fileIndex: file, offset: record.Offset,
			payloadDigest: record.Header.Get("WARC-Payload-Digest"), recordType: record.Type(),
			isUnchangedRevisit: record.Header.Get("WARC-Profile") == warc.ProfileSamePayload,
		})
	}
}

var errNotArchived = errors.New("its answer is not archived")

// findResponse returns the bytes of the answer for url that ended at end: the last one whose request
// began by then. Without such an answer it returns errNotArchived.
func (a *ArchiveIndex) findResponse(url string, end time.Time) ([]byte, error) {
	records := a.recordLocations[url]
	i := sort.Search(len(records), func(i int) bool { return records[i].date.After(end) }) - 1
	if i < 0 {
		return nil, errNotArchived
	}
	head, err := a.readRecordBlock(records[i])
	if err != nil || !records[i].isUnchangedRevisit {
		return head, err
	}
	for _, p := range slices.Backward(records[:i]) { // find the earlier answer with the payload
		if p.recordType == warc.TypeResponse && p.payloadDigest == records[i].payloadDigest {
			return a.readRecordBlock(p)
		}
	}
	return nil, fmt.Errorf("%s: the answer that a revisit refers to is not archived", url)
}

// readRecordBlock returns the block of a record.
func (a *ArchiveIndex) readRecordBlock(p recordIndexEntry) ([]byte, error) {
	f, err := os.Open(a.files[p.fileIndex])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(p.offset, io.SeekStart); err != nil {
		return nil, err
	}
	record, err := warc.NewReader(f).Next()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.files[p.fileIndex], err)
	}
	return io.ReadAll(record.Block)
}
