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

// VerifyOptions say against what Verify checks a ledger. The zero value checks no signatures.
type VerifyOptions struct {
	// PublicKey verifies the signatures of checkpoints. If it is set, a checkpoint must sign the end
	// of the ledger, whether or not the runs name a key. nil means that signatures are not checked.
	PublicKey ed25519.PublicKey
	// StillBeingWritten is set if a crawl is writing the ledger: the last run need not have ended,
	// and the last record may be torn.
	StillBeingWritten bool
	// ExpectedRecordHashes are records that the reader has kept, and that the ledger must contain.
	ExpectedRecordHashes []ExpectedRecordHash
	// MaxFindings is how many findings, and how many warnings, the report lists. It counts more.
	// 0 means 1,000.
	MaxFindings int
}

// A VerifyReport is the result of Verify.
type VerifyReport struct {
	Segments            int   `json:"segments"` // files
	Records             int64 `json:"records"`
	Runs                int64 `json:"runs"`
	Requests            int64 `json:"requests"`
	Responses           int64 `json:"answers"`
	UnansweredRequests  int64 `json:"interrupted"` // requests without a response, because a process was killed
	Refusals            int64 `json:"refusals"`
	CheckedVerdicts     int64 `json:"verdicts"`     // verdicts that were derived again from their robots.txt
	RobotsFiles         int   `json:"robots_files"` // robots.txt files that records name
	MeasuredDelays      int64 `json:"rests"`        // delays between two visits, measured by the times of records
	Checkpoints         int64 `json:"checkpoints"`  // including those whose signatures were not checked
	UnsignedRecords     int64 `json:"unsigned"`     // records after the last checkpoint
	Closed              bool  `json:"closed"`       // whether the ledger ends with the end of a run
	ExpectedHashesFound int   `json:"held"`         // records of VerifyOptions.ExpectedRecordHashes in the ledger
	// LastRecordHash identifies the last record. A reader who keeps it can check later that no
	// record up to it was changed.
	LastRecordHash ExpectedRecordHash `json:"last"`
	// StoppedAtFaultLimit is set if Verify stopped reading, because it found too many faults.
	StoppedAtFaultLimit bool `json:"stopped,omitempty"`

	Findings         []Finding `json:"findings"`
	UnlistedFindings int64     `json:"more_findings"` // findings that Findings does not list
	// Warnings are facts that are not wrong and that a reader should know, such as that the clock
	// was set.
	Warnings         []Finding `json:"warnings"`
	UnlistedWarnings int64     `json:"more_warnings"` // warnings that Warnings does not list
}

// OK reports whether there are no findings. Warnings do not count.
func (r *VerifyReport) OK() bool { return len(r.Findings) == 0 }

// A Finding is a fault of a ledger, or a warning.
type Finding struct {
	File         string `json:"file"`             // the segment, or the robots.txt
	Line         int    `json:"line,omitempty"`   // from 1; 0 if the finding is about the file
	RecordNumber int64  `json:"record,omitempty"` // the number that the record states, or should have
	Message      string `json:"what"`             // continues a sentence that begins with the record or file
}

// String returns the finding on one line: file:line: record N message.
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

// A verifier checks a ledger from its first record to its last. Its memory grows with the number of
// hosts and robots.txt files, not with the number of records.
type verifier struct {
	dir    string
	opts   VerifyOptions
	report VerifyReport

	position              LinePosition // of the current line
	recordNumber          int64        // number of the current record
	isHeadKnown           bool         // whether possibleHeads is known; false after an unreadable part
	possibleHeads         [2]chainHead // the last record with the hash that it states, and with its computed one
	previousChainHead     chainHead    // the record before the current one
	previousSegment       *segment     // the segment that was read last; nil in the first
	previousSegmentSHA256 string       // its SHA-256, in hex; empty if it could not be read to its end
	lastRecordTime        time.Time    // time of the last record, less the changes of the clock
	runEnded              bool         // see runIsEndedAfter
	isLastLineTorn        bool         // whether the last line has no line end
	runStart              *RunStart    // the current run; nil between runs
	runRequestCount       int64        // requests of the current run
	lastRunKeyID          string       // RunStart.KeyID of the last run
	verdictChecker        verdictChecker
	delayChecker          delayChecker
	expectedHashesFound   []bool // by index in opts.ExpectedRecordHashes
	robotsRedirects       robotsRedirectTracker
}

// Verify checks the ledger in a directory. It returns an error only if it cannot read the directory, or
// finds no ledger there; faults are findings of the report.
func Verify(dir string, opts VerifyOptions) (*VerifyReport, error) {
	if opts.MaxFindings <= 0 {
		opts.MaxFindings = 1000
	}
	all, err := listSegments(dir)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("ledger: no segment in %s: %w", dir, fs.ErrNotExist)
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

// maxUnlistedFindings is how many unlisted findings and warnings are counted before Verify stops reading.
// A file of a few KiB may decompress to an endless ledger of findings.
const maxUnlistedFindings = 100_000

// addFindingf adds a finding about the current record.
func (v *verifier) addFindingf(format string, args ...any) { v.addFinding(v.newFinding(format, args)) }

// addWarningf adds a warning about the current record.
func (v *verifier) addWarningf(format string, args ...any) {
	v.appendOrCount(&v.report.Warnings, &v.report.UnlistedWarnings, v.newFinding(format, args))
}

// newFinding returns a Finding about the current record.
func (v *verifier) newFinding(format string, args []any) Finding {
	return Finding{v.position.File, v.position.Line, v.recordNumber, fmt.Sprintf(format, args...)}
}

// addFinding lists or counts a finding.
func (v *verifier) addFinding(f Finding) {
	v.appendOrCount(&v.report.Findings, &v.report.UnlistedFindings, f)
}

// appendOrCount lists f in all, or counts it in more if MaxFindings are listed.
func (v *verifier) appendOrCount(all *[]Finding, more *int64, f Finding) {
	if len(*all) >= v.opts.MaxFindings {
		*more++
		return
	}
	*all = append(*all, f)
}

// checkSegment checks the records of one file, and its place among the files.
func (v *verifier) checkSegment(s *segment) {
	v.report.Segments++
	v.position, v.recordNumber = LinePosition{File: s.name}, 0
	// The previous file must be complete, and have the number before.
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
	// Check the records, and compute the SHA-256 of the file meanwhile.
	s.fileHash = sha256.New()
	err := s.forEachLine(v.dir, func(number int, line []byte) error {
		v.position.Line = number
		v.checkLine(line)
		unlisted := v.report.UnlistedFindings + v.report.UnlistedWarnings
		if v.report.StoppedAtFaultLimit = unlisted > maxUnlistedFindings; v.report.StoppedAtFaultLimit {
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

// checkLine checks the next line of a segment: its form, its place in the chain, its time and its content.
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

// handleUndecodableLine adds a finding for a line that is not a record. If the line states a hash, the
// next record may still follow it.
func (v *verifier) handleUndecodableLine(line []byte, err error) {
	v.isLastLineTorn = errors.Is(err, errTorn)
	v.report.Records--
	v.report.UnsignedRecords--
	v.runEnded = false
	if v.isLastLineTorn {
		return // checkEnd or the next segment reports it
	}
	v.addFindingf("%v", err)
	hash, rest, err := splitHashAndRecord(line)
	if v.isHeadKnown = err == nil; v.isHeadKnown {
		n := v.possibleHeads[0].number + 1
		v.possibleHeads = [2]chainHead{{n, hash}, {n, v.possibleHeads[0].nextHash(rest)}}
	}
}

// checkRecordInChain checks that a record follows the last one, and reports whether the record is in its
// place. Gaps are findings, and the record after a gap counts as in its place.
func (v *verifier) checkRecordInChain(r *Record, line []byte) bool {
	switch want := v.possibleHeads[0].number + 1; {
	// A lower number than expected: the rest of the record is not checked.
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
	// The hash may follow from the last record as it states its hash, or as it was computed: if that
	// record was changed, only it is reported, and not each record after it.
	computed := v.possibleHeads[0].nextHash(rest)
	if v.isHeadKnown && computed != hash && v.possibleHeads[1].nextHash(rest) != hash {
		v.addFindingf("does not have the hash that it states: it, or the record before it, was changed")
	}
	v.isHeadKnown, v.previousChainHead = true, v.possibleHeads[0]
	v.possibleHeads = [2]chainHead{{r.Number, hash}, {r.Number, computed}}
	v.report.LastRecordHash = ExpectedRecordHash{r.Number, string(hash[:])}
	v.checkExpectedRecord(v.report.LastRecordHash.Hash)
	return true
}

// checkEnd completes the report, and checks how the ledger ends.
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
		v.addFindingf("is torn: the process was killed and the crawl was not continued, or the end was cut off")
	case !v.report.Closed:
		v.addFindingf("is the last, and does not end a run: the process was killed and the crawl was not continued, " +
			"or the end was cut off")
	// With a public key the end must be signed even if the last run names no key: otherwise removing
	// the key from a RunStart would hide unsigned records.
	case (v.lastRunKeyID != "" || v.opts.PublicKey != nil) && v.report.UnsignedRecords > 0:
		v.addFindingf("is the last, and no checkpoint signs it: the process was killed, or the end was cut off")
	}
}

// checkCheckpoint checks the key and the signature of a checkpoint, which signs the records before it.
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
	case !ed25519.Verify(v.opts.PublicKey, checkpointText(r.Number, r.Time, string(v.previousChainHead.hash[:])),
		c.Signature):
		v.addFindingf("is a checkpoint whose signature is wrong")
	}
}

// checkSegmentStart checks what a segment states of the previous file.
func (v *verifier) checkSegmentStart(s *SegmentStart) {
	if v.previousSegment == nil || s.PreviousFile != v.previousSegment.name {
		v.addFindingf("says that it follows %s, which is missing", s.PreviousFile)
		return
	}
	switch {
	case v.previousSegmentSHA256 == "":
		v.addFinding(Finding{File: s.PreviousFile, Message: fmt.Sprintf(
			"cannot be read to its end, and so cannot be compared with the SHA-256 that record %d states",
			v.recordNumber)})
	case v.previousSegmentSHA256 != s.PreviousSHA256:
		v.addFinding(Finding{File: s.PreviousFile, Message: fmt.Sprintf("does not have the SHA-256 that record %d "+
			"states: it was changed", v.recordNumber)})
	}
}
