package sinks

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
)

// maxLineBytes limits the length of a line when a file is read back. It is far larger than any line of
// output.
const maxLineBytes = 64 << 20

// damagedFileRemedy tells the operator what to do about a damaged JSONL file.
const damagedFileRemedy = "restore it from a backup, or move it away to begin another (the visits in it are not " +
	"repeated)"

// repairAfterDurableEnd repairs the end of a file whose first durable.SyncedSize bytes were on the disk.
// The file must still have these bytes. After an unclean stop it checks every line in them, and cuts the
// rest at the first line that is not a whole line of output. Then it writes the remaining rest again, so
// that it is on the disk: see disk.ReopenAndRewriteRange.
func (f *jsonlFile) repairAfterDurableEnd(durable datadir.OutputFileCheckpoint) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	switch {
	case size == 0:
		return nil
	case size < durable.SyncedSize:
		return fmt.Errorf("%s has %d bytes, and %d were on the disk: it was cut short; %s",
			f.name, size, durable.SyncedSize, damagedFileRemedy)
	case !durable.UncheckedSinceUncleanClose: // after a clean stop, only another program can have written the rest
		return cutOrEndTornLine(f.file)
	}
	// Check the lines that were on the disk: a damaged one cannot be repaired.
	whole, err := measureValidLines(io.NewSectionReader(f.file, 0, durable.SyncedSize), isJSONRecordOrForeignText)
	if err == nil && whole.size < durable.SyncedSize {
		err = fmt.Errorf("%s is damaged: line %d is not whole, and was on the disk; %s", f.name,
			whole.lineCount+1, damagedFileRemedy)
	}
	if err != nil {
		return err
	}
	// Cut the rest at its first damaged line: its visits were not acked, and are repeated.
	whole, err = measureValidLines(io.NewSectionReader(f.file, durable.SyncedSize, size-durable.SyncedSize),
		isRecordLine)
	if err != nil {
		return err
	}
	whole.size += durable.SyncedSize
	if whole.size < size {
		cmp.Or(durable.Log, slog.Default()).Info("the end of the output was not whole, and has been cut",
			"file", f.name, "bytes_cut", size-whole.size)
		if err := f.file.Truncate(whole.size); err != nil {
			return err
		}
	}
	return disk.ReopenAndRewriteRange(filepath.Base(f.name), f.dir.openFile, durable.SyncedSize, whole.size)
}

// A wholeLineExtent is the part of a file that consists of whole lines: its bytes and its lines.
type wholeLineExtent struct{ size, lineCount int64 }

// measureValidLines returns the extent of the lines before the first line that has no line end, is longer
// than maxLineBytes, or is not valid.
func measureValidLines(r io.Reader, isValid func(line []byte) bool) (extent wholeLineExtent, err error) {
	// Read line by line. long collects a line that is longer than the buffer.
	lines := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, line...); len(long) > maxLineBytes {
				return extent, nil
			}
			continue
		}
		if len(long) > 0 {
			long = append(long, line...)
			line, long = long, long[:0]
		}
		switch {
		case err == io.EOF:
			return extent, nil
		case err != nil:
			return extent, err
		case !isValid(line):
			return extent, nil
		}
		extent.size += int64(len(line))
		extent.lineCount++
	}
}

// isRecordLine reports whether a line is the record of a visit.
func isRecordLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte(recordPrefix)) && json.Valid(line)
}

// isJSONRecordOrForeignText reports whether a line is the record of a visit, or text that another program
// may have written.
func isJSONRecordOrForeignText(line []byte) bool {
	if bytes.HasPrefix(line, []byte(recordPrefix)) {
		return json.Valid(line)
	}
	return utf8.Valid(line) && bytes.IndexByte(line, 0) < 0
}

// durableExtent returns the serial of the present file and how many of its bytes are on the disk. It
// returns false if the output is not a regular file.
func (f *jsonlFile) durableExtent() (serial, size int64, ok bool) {
	if f == nil || !f.isRegular {
		return 0, 0, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil { // between the rename of a full file and the creation of the next one
		return int64(f.lastRotatedSerial) + 1, 0, true
	}
	size = f.syncTracker.SyncedBytes(f.file)
	if info, err := f.file.Stat(); err != nil || info.Size() < size { // another program has emptied the file
		size = 0
	}
	return int64(f.lastRotatedSerial), size, true
}
