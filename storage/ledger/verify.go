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
	// PublicKey is what checkpoints are signed with, and all of a ledger that is closed is
	// signed, whatever its runs say; nil: signatures are not checked.
	PublicKey ed25519.PublicKey
	// StillBeingWritten says that the ledger is being written to: it need not be closed, and its
	// last record may be torn.
	StillBeingWritten bool
	// ExpectedRecordHashes are records that a reader has kept: the ledger must contain them.
	ExpectedRecordHashes []ExpectedRecordHash
	// MaxFindings is how many are kept, and how many warnings; of more, the VerifyReport has the
	// number. Default 1,000.
	MaxFindings int
}

// A VerifyReport is what Verify found.
type VerifyReport struct {
	Segments            int   `json:"segments"` // files
	Records             int64 `json:"records"`
	Runs                int64 `json:"runs"`
	Requests            int64 `json:"requests"`
	Responses           int64 `json:"answers"`
	UnansweredRequests  int64 `json:"interrupted"` // requests without an answer: the process was killed
	Refusals            int64 `json:"refusals"`
	CheckedVerdicts     int64 `json:"verdicts"`     // derived again from the robots.txt
	RobotsFiles         int   `json:"robots_files"` // that records name
	MeasuredDelays      int64 `json:"rests"`        // of hosts between two requests, measured by the records' times
	Checkpoints         int64 `json:"checkpoints"`  // whether their signatures were checked or not
	UnsignedRecords     int64 `json:"unsigned"`     // records after the last checkpoint
	Closed              bool  `json:"closed"`       // it ends with that of a run
	ExpectedHashesFound int   `json:"held"`         // how many of VerifyOptions.ExpectedRecordHashes the ledger contains
	// LastRecordHash is the last record: a reader who keeps it can check later that no earlier
	// record was changed.
	LastRecordHash ExpectedRecordHash `json:"last"`
	// StoppedAtFaultLimit is set if Verify did not read the rest, because it found too many faults.
	StoppedAtFaultLimit bool `json:"stopped,omitempty"`

	Findings         []Finding `json:"findings"`
	UnlistedFindings int64     `json:"more_findings"` // than are listed
	// Warnings are of what is not wrong, and should be known: that the clock was set.
	Warnings         []Finding `json:"warnings"`
	UnlistedWarnings int64     `json:"more_warnings"`
}

// OK reports whether nothing is wrong, whatever there are warnings of.
func (r *VerifyReport) OK() bool { return len(r.Findings) == 0 }

// A Finding is something that is wrong with a ledger, or that should be known of it.
type Finding struct {
	File         string `json:"file"`             // the segment's, or the robots.txt's
	Line         int    `json:"line,omitempty"`   // from 1; 0: it is of the file
	RecordNumber int64  `json:"record,omitempty"` // its number, as it states it or as it should be
	Message      string `json:"what"`
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
	return s + " " + f.Message
}

// A verifier reads a ledger from its beginning. Its memory grows with the hosts
// and the robots.txt files, not with the records.
type verifier struct {
	dir    string
	opts   VerifyOptions
	report VerifyReport

	position              LinePosition
	recordNumber          int64          // of the record
	isHeadKnown           bool           // what the next record follows
	possibleHeads         [2]chainHead   // it may: the last one as it states its hash, and as it has it
	previousChainHead     chainHead      // what the record at hand follows
	previousSegment       *segment       // that has been read
	previousSegmentSHA256 string         // its SHA-256, in hex; empty: it could not be read to its end
	lastRecordTime        time.Time      // of the last record, had nobody set the clock
	runEnded              bool           // see runIsEndedAfter
	isLastLineTorn        bool           // the last line is
	runStart              *RunStart      // nil: none has begun
	runRequestCount       int64          // of the run
	lastRunKeyID          string         // of the last run
	verdictChecker        verdictChecker //
	delayChecker          delayChecker   //
	expectedHashesFound   []bool         // which of opts.ExpectedRecordHashes were found
	robotsRedirects       robotsRedirectTracker
}

// Verify checks the ledger in a directory. The error is not nil where it cannot be
// read at all; what is wrong with it is in the VerifyReport.
func Verify(dir string, opts VerifyOptions) (*VerifyReport, error) {
	if opts.MaxFindings <= 0 {
		opts.MaxFindings = 1000
	}
	all, err := listSegments(dir)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("ledger: there is none in %s: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	v := &verifier{dir: dir, opts: opts, isHeadKnown: true, possibleHeads: [2]chainHead{genesisHead(), genesisHead()},
		verdictChecker: verdictChecker{robotsDir: filepath.Join(dir, robotsDir), intactByHash: map[string]bool{}},
		delayChecker: delayChecker{
			hosts: map[string]*hostVisitState{}, unansweredRequests: map[int64]pendingRequest{},
		},
		robotsRedirects:     robotsRedirectTracker{map[int64]robotsFetchKey{}, map[robotsFetchKey]bool{}},
		expectedHashesFound: make([]bool, len(opts.ExpectedRecordHashes)),
		report:              VerifyReport{Findings: []Finding{}, Warnings: []Finding{}}}
	for i := range all {
		if v.checkSegment(&all[i]); v.report.StoppedAtFaultLimit {
			break
		}
	}
	v.checkEnd()
	return &v.report, nil
}

// maxUnlistedFindings is how many findings and warnings are counted beyond those that are kept. A
// file of a few KiB may unpack to an endless ledger of findings.
const maxUnlistedFindings = 100_000

// addFindingf notes something that is wrong with the record at hand.
func (v *verifier) addFindingf(format string, args ...any) { v.addFinding(v.newFinding(format, args)) }

// addWarningf notes something that should be known of the record at hand.
func (v *verifier) addWarningf(format string, args ...any) {
	v.appendOrCount(&v.report.Warnings, &v.report.UnlistedWarnings, v.newFinding(format, args))
}

// newFinding is a Finding of the record at hand.
func (v *verifier) newFinding(format string, args []any) Finding {
	return Finding{v.position.File, v.position.Line, v.recordNumber, fmt.Sprintf(format, args...)}
}

func (v *verifier) addFinding(f Finding) {
	v.appendOrCount(&v.report.Findings, &v.report.UnlistedFindings, f)
}

// appendOrCount keeps f, or counts it if there are enough.
func (v *verifier) appendOrCount(all *[]Finding, more *int64, f Finding) {
	if len(*all) >= v.opts.MaxFindings {
		*more++
		return
	}
	*all = append(*all, f)
}

// checkSegment checks one file.
func (v *verifier) checkSegment(s *segment) {
	v.report.Segments++
	v.position, v.recordNumber = LinePosition{File: s.name}, 0
	if v.isLastLineTorn {
		v.addFindingf("follows a file that ends within a record")
	}
	v.isLastLineTorn = false
	last := 0
	if v.previousSegment != nil {
		last = v.previousSegment.serial
	}
	if s.serial != last+1 {
		v.addFindingf("is number %d, and file %d is missing", s.serial, last+1)
	}
	s.fileHash = sha256.New()
	err := s.forEachLine(v.dir, func(number int, line []byte) error {
		v.position.Line = number
		v.checkLine(line)
		if v.report.StoppedAtFaultLimit = v.report.UnlistedFindings+v.report.UnlistedWarnings > maxUnlistedFindings; v.report.StoppedAtFaultLimit {
			return errStopReading
		}
		return nil
	})
	v.previousSegmentSHA256 = ""
	if err == nil {
		v.previousSegmentSHA256 = hex.EncodeToString(s.fileHash.Sum(nil))
	}
	if err != nil && !errors.Is(err, errStopReading) {
		v.position.Line, v.recordNumber = 0, 0
		v.addFindingf("cannot be read to its end: %v", err)
		v.isHeadKnown = false
	}
	v.previousSegment = s
}

// checkLine checks the next line.
func (v *verifier) checkLine(line []byte) {
	v.report.Records++
	v.report.UnsignedRecords++
	v.recordNumber = v.possibleHeads[0].number + 1
	r, err := decodeRecord(line)
	if err != nil {
		v.handleUndecodableLine(line, err)
		return
	}
	if !v.checkRecordInChain(r, line) {
		return
	}
	v.recordNumber = r.Number
	v.checkTime(r)
	v.runEnded = runIsEndedAfter(r, v.runEnded)
	v.checkRecord(r)
}

// handleUndecodableLine notes a line that is no record. Its hash, if it has one, may still be
// what the next record follows.
func (v *verifier) handleUndecodableLine(line []byte, err error) {
	v.isLastLineTorn = errors.Is(err, errTorn)
	v.report.Records--
	v.report.UnsignedRecords--
	v.runEnded = false
	if v.isLastLineTorn {
		return // what that means is known at the end
	}
	v.addFindingf("%v", err)
	hash, rest, err := splitHashAndRecord(line)
	if v.isHeadKnown = err == nil; v.isHeadKnown {
		n := v.possibleHeads[0].number + 1
		v.possibleHeads = [2]chainHead{{n, hash}, {n, v.possibleHeads[0].nextHash(rest)}}
	}
}

// checkRecordInChain checks that a record follows the last one, and reports whether it is in its
// place.
func (v *verifier) checkRecordInChain(r *Record, line []byte) bool {
	switch want := v.possibleHeads[0].number + 1; {
	case r.Number < want:
		v.recordNumber = r.Number
		v.addFindingf("stands where record %d should be: it was added, moved or written twice", want)
		return false
	case r.Number == want+1:
		v.addFindingf("is missing")
		v.isHeadKnown = false
	case r.Number > want:
		v.addFindingf("is missing, and so are all to %d", r.Number-1)
		v.isHeadKnown = false
	}
	v.recordNumber = r.Number
	hash, rest, _ := splitHashAndRecord(line)
	computed := v.possibleHeads[0].nextHash(rest)
	if v.isHeadKnown && computed != hash && v.possibleHeads[1].nextHash(rest) != hash {
		v.addFindingf("does not have the hash that it states: it, or what it follows, was changed")
	}
	v.isHeadKnown, v.previousChainHead = true, v.possibleHeads[0]
	v.possibleHeads = [2]chainHead{{r.Number, hash}, {r.Number, computed}}
	v.report.LastRecordHash = ExpectedRecordHash{r.Number, string(hash[:])}
	v.checkExpectedRecord(v.report.LastRecordHash.Hash)
	return true
}

// checkEnd checks how the ledger ends.
func (v *verifier) checkEnd() {
	v.report.Closed = v.runEnded && !v.isLastLineTorn
	v.report.UnansweredRequests += int64(len(v.delayChecker.unansweredRequests))
	v.report.RobotsFiles = len(v.verdictChecker.intactByHash)
	for _, f := range v.verdictChecker.fileFindings {
		v.addFinding(f)
	}
	v.reportMissingExpectedHashes()
	v.recordNumber = v.possibleHeads[0].number
	switch {
	case v.opts.StillBeingWritten:
	case v.isLastLineTorn:
		v.recordNumber++
		v.addFindingf("is torn: the process was killed and has not gone on since, or the end was cut off")
	case !v.report.Closed:
		v.addFindingf("is the last, and no end of a run: the process was killed and has not gone on since, or the end was cut off")
	case (v.lastRunKeyID != "" || v.opts.PublicKey != nil) && v.report.UnsignedRecords > 0: // to take the key out of a run signs nothing
		v.addFindingf("is the last, and no checkpoint signs it: the process was killed, or the end was cut off")
	}
}

// checkCheckpoint checks a signature, which is of what stands before it.
func (v *verifier) checkCheckpoint(r *Record) {
	c := r.Checkpoint
	v.report.Checkpoints++
	v.report.UnsignedRecords = 0
	switch {
	case c.KeyID != v.lastRunKeyID:
		v.addFindingf("is a checkpoint by a key that its run does not name")
	case v.opts.PublicKey == nil:
	case c.KeyID != publicKeyID(v.opts.PublicKey):
		v.addFindingf("is a checkpoint by another key, %s", c.KeyID)
	case !ed25519.Verify(v.opts.PublicKey, checkpointText(r.Number, r.Time, string(v.previousChainHead.hash[:])), c.Signature):
		v.addFindingf("is a checkpoint whose signature is wrong")
	}
}

// checkSegmentStart checks the first record of a file but the first.
func (v *verifier) checkSegmentStart(s *SegmentStart) {
	if v.previousSegment == nil || s.PreviousFile != v.previousSegment.name {
		v.addFindingf("says that it follows %s, which is missing", s.PreviousFile)
		return
	}
	switch {
	case v.previousSegmentSHA256 == "":
		v.addFinding(Finding{File: s.PreviousFile, Message: fmt.Sprintf(
			"cannot be read to its end, and so not be compared with the SHA-256 that record %d states", v.recordNumber)})
	case v.previousSegmentSHA256 != s.PreviousSHA256:
		v.addFinding(Finding{File: s.PreviousFile, Message: fmt.Sprintf("does not have the SHA-256 that record %d states: it was changed", v.recordNumber)})
	}
}
