package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// VerifyOptions say what a ledger is checked against.
type VerifyOptions struct {
	// Key is what checkpoints are signed with, and all of a ledger that is closed is
	// signed, whatever its runs say; nil: signatures are not checked.
	Key ed25519.PublicKey
	// Open says that the ledger is being written to: it need not be closed, and its
	// last record may be torn.
	Open bool
	// Holds are records that a reader has kept: the ledger must contain them.
	Holds []Hold
	// Findings is how many are kept, and how many warnings; of more, the Report has the
	// number. Default 1,000.
	Findings int
}

// A Report is what Verify found.
type Report struct {
	Segments    int   `json:"segments"` // files
	Records     int64 `json:"records"`
	Runs        int64 `json:"runs"`
	Requests    int64 `json:"requests"`
	Answers     int64 `json:"answers"`
	Interrupted int64 `json:"interrupted"` // requests without an answer: the process was killed
	Refusals    int64 `json:"refusals"`
	Verdicts    int64 `json:"verdicts"`     // derived again from the robots.txt
	RobotsFiles int   `json:"robots_files"` // that records name
	Rests       int64 `json:"rests"`        // of hosts between two requests, measured by the records' times
	Checkpoints int64 `json:"checkpoints"`  // whether their signatures were checked or not
	Unsigned    int64 `json:"unsigned"`     // records after the last checkpoint
	Closed      bool  `json:"closed"`       // it ends with that of a run
	Held        int   `json:"held"`         // how many of VerifyOptions.Holds the ledger contains
	// Last is the last record: a reader who keeps it can check later that no earlier
	// record was changed.
	Last Hold `json:"last"`
	// Stopped is set if Verify did not read the rest, because it found too many faults.
	Stopped bool `json:"stopped,omitempty"`

	Findings []Finding `json:"findings"`
	More     int64     `json:"more_findings"` // than are listed
	// Warnings are of what is not wrong, and should be known: that the clock was set.
	Warnings     []Finding `json:"warnings"`
	MoreWarnings int64     `json:"more_warnings"`
}

// OK reports whether nothing is wrong, whatever there are warnings of.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// A Finding is something that is wrong with a ledger, or that should be known of it.
type Finding struct {
	File         string `json:"file"`             // the segment's, or the robots.txt's
	Line         int    `json:"line,omitempty"`   // from 1; 0: it is of the file
	RecordNumber int64  `json:"record,omitempty"` // its number, as it states it or as it should be
	What         string `json:"what"`
}

// String returns it on one line.
func (f Finding) String() string {
	s := f.File
	if f.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, f.Line)
	}
	if f.RecordNumber > 0 {
		s = fmt.Sprintf("%s: record %d", s, f.RecordNumber)
	}
	return s + " " + f.What
}

// A verifier reads a ledger from its beginning. Its memory grows with the hosts
// and the robots.txt files, not with the records.
type verifier struct {
	dir    string
	opts   VerifyOptions
	report Report

	at             Place
	number         int64          // of the record
	known          bool           // what the next record follows
	ends           [2]link        // it may: the last one as it states its hash, and as it has it
	prior          link           // what the record at hand follows
	before         *segment       // that has been read
	sum            string         // its SHA-256, in hex; empty: it could not be read to its end
	time           time.Time      // of the last record, had nobody set the clock
	tail           tail           //
	torn           bool           // the last line is
	run            *Run           // nil: none has begun
	sent           int64          // requests of it
	key            string         // of the last run
	verdictChecker verdictChecker //
	pace           paceKeeper     //
	held           []bool         // which of opts.Holds were found
	led            redirectKeeper
}

// Verify checks the ledger in a directory. The error is not nil where it cannot be
// read at all; what is wrong with it is in the Report.
func Verify(dir string, opts VerifyOptions) (*Report, error) {
	if opts.Findings <= 0 {
		opts.Findings = 1000
	}
	all, err := segments(dir)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("ledger: there is none in %s: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	v := &verifier{dir: dir, opts: opts, known: true, ends: [2]link{origin(), origin()},
		verdictChecker: newVerdictChecker(filepath.Join(dir, robotsDir)), pace: newPaceKeeper(),
		held: make([]bool, len(opts.Holds)), led: newRedirectKeeper(),
		report: Report{Findings: []Finding{}, Warnings: []Finding{}}}
	for i := range all {
		if v.segment(&all[i]); v.report.Stopped {
			break
		}
	}
	v.end()
	return &v.report, nil
}

// maxMore is how many findings and warnings are counted beyond those that are kept. A
// file of a few KiB may unpack to an endless ledger of findings.
const maxMore = 100_000

// find notes something that is wrong with the record at hand.
func (v *verifier) find(format string, args ...any) { v.note(v.here(format, args)) }

// warn notes something that should be known of the record at hand.
func (v *verifier) warn(format string, args ...any) {
	v.keep(&v.report.Warnings, &v.report.MoreWarnings, v.here(format, args))
}

// here is a Finding of the record at hand.
func (v *verifier) here(format string, args []any) Finding {
	return Finding{v.at.File, v.at.Line, v.number, fmt.Sprintf(format, args...)}
}

func (v *verifier) note(f Finding) { v.keep(&v.report.Findings, &v.report.More, f) }

// keep keeps f, or counts it if there are enough.
func (v *verifier) keep(all *[]Finding, more *int64, f Finding) {
	if len(*all) >= v.opts.Findings {
		*more++
		return
	}
	*all = append(*all, f)
}

// segment checks one file.
func (v *verifier) segment(s *segment) {
	v.report.Segments++
	v.at, v.number = Place{File: s.name}, 0
	if v.torn {
		v.find("follows a file that ends within a record")
	}
	v.torn = false
	last := 0
	if v.before != nil {
		last = v.before.serial
	}
	if s.serial != last+1 {
		v.find("is number %d, and file %d is missing", s.serial, last+1)
	}
	s.sum = sha256.New()
	err := s.forEachLine(v.dir, func(number int, line []byte) error {
		v.at.Line = number
		v.checkLine(line)
		if v.report.Stopped = v.report.More+v.report.MoreWarnings > maxMore; v.report.Stopped {
			return errEnough
		}
		return nil
	})
	v.sum = ""
	if err == nil {
		v.sum = hex.EncodeToString(s.sum.Sum(nil))
	}
	if err != nil && !errors.Is(err, errEnough) {
		v.at.Line, v.number = 0, 0
		v.find("cannot be read to its end: %v", err)
		v.known = false
	}
	v.before = s
}

// checkLine checks the next line.
func (v *verifier) checkLine(line []byte) {
	v.report.Records++
	v.report.Unsigned++
	v.number = v.ends[0].n + 1
	r, err := decode(line)
	if err != nil {
		v.undecoded(line, err)
		return
	}
	if !v.link(r, line) {
		return
	}
	v.number = r.N
	v.tell(r)
	v.tail.note(r)
	v.meaning(r)
}

// undecoded notes a line that is no record. Its hash, if it has one, may still be
// what the next record follows.
func (v *verifier) undecoded(line []byte, err error) {
	v.torn = errors.Is(err, errTorn)
	v.report.Records--
	v.report.Unsigned--
	v.tail = tail{}
	if v.torn {
		return // what that means is known at the end
	}
	v.find("%v", err)
	hash, rest, err := split(line)
	if v.known = err == nil; v.known {
		n := v.ends[0].n + 1
		v.ends = [2]link{{n, hash}, {n, v.ends[0].next(rest)}}
	}
}

// link checks that a record follows the last one, and reports whether it is in its
// place.
func (v *verifier) link(r *Record, line []byte) bool {
	switch want := v.ends[0].n + 1; {
	case r.N < want:
		v.number = r.N
		v.find("stands where record %d should be: it was added, moved or written twice", want)
		return false
	case r.N == want+1:
		v.find("is missing")
		v.known = false
	case r.N > want:
		v.find("is missing, and so are all to %d", r.N-1)
		v.known = false
	}
	v.number = r.N
	hash, rest, _ := split(line)
	computed := v.ends[0].next(rest)
	if v.known && computed != hash && v.ends[1].next(rest) != hash {
		v.find("does not have the hash that it states: it, or what it follows, was changed")
	}
	v.known, v.prior = true, v.ends[0]
	v.ends = [2]link{{r.N, hash}, {r.N, computed}}
	v.report.Last = Hold{r.N, string(hash[:])}
	v.checkHolds(v.report.Last.Hash)
	return true
}

// end checks how the ledger ends.
func (v *verifier) end() {
	v.report.Closed = v.tail.runEnded && !v.torn
	v.report.Interrupted += int64(len(v.pace.open))
	v.report.RobotsFiles = len(v.verdictChecker.files)
	for _, f := range v.verdictChecker.findings {
		v.note(f)
	}
	v.endHolds()
	v.number = v.ends[0].n
	switch {
	case v.opts.Open:
	case v.torn:
		v.number++
		v.find("is torn: the process was killed and has not gone on since, or the end was cut off")
	case !v.report.Closed:
		v.find("is the last, and no end of a run: the process was killed and has not gone on since, or the end was cut off")
	case (v.key != "" || v.opts.Key != nil) && v.report.Unsigned > 0: // to take the key out of a run signs nothing
		v.find("is the last, and no checkpoint signs it: the process was killed, or the end was cut off")
	}
}

// checkpoint checks a signature, which is of what stands before it.
func (v *verifier) checkpoint(r *Record) {
	c := r.Checkpoint
	v.report.Checkpoints++
	v.report.Unsigned = 0
	switch {
	case c.Key != v.key:
		v.find("is a checkpoint by a key that its run does not name")
	case v.opts.Key == nil:
	case c.Key != KeyID(v.opts.Key):
		v.find("is a checkpoint by another key, %s", c.Key)
	case !ed25519.Verify(v.opts.Key, checkpointText(r.N, r.Time, string(v.prior.hash[:])), c.Signature):
		v.find("is a checkpoint whose signature is wrong")
	}
}

// follows checks the first record of a file but the first.
func (v *verifier) follows(s *Segment) {
	if v.before == nil || s.Previous != v.before.name {
		v.find("says that it follows %s, which is missing", s.Previous)
		return
	}
	switch {
	case v.sum == "":
		v.note(Finding{File: s.Previous, What: fmt.Sprintf(
			"cannot be read to its end, and so not be compared with the SHA-256 that record %d states", v.number)})
	case v.sum != s.SHA256:
		v.note(Finding{File: s.Previous, What: fmt.Sprintf("does not have the SHA-256 that record %d states: it was changed", v.number)})
	}
}
