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

// maxLineBytes is far more bytes than any line of output has.
const maxLineBytes = 64 << 20

// damagedFileRemedy says what to do about a damaged file of lines.
const damagedFileRemedy = "restore it from a backup, or move it away to begin another (the visits in it are not made again)"

// repairAfterDurableEnd repairs the end of a file whose first known.Size bytes are on the disk.
// These bytes must be there. After an unclean stop it checks every line in them, cuts
// the rest at the first line that is not a whole line of output, and writes what
// remains of the rest again: see disk.RewriteSameBytes.
func (f *jsonlFile) repairAfterDurableEnd(durable datadir.OutputFileCheckpoint) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	switch {
	case size == 0: // the file is empty or new
		return nil
	case size < durable.SyncedSize:
		return fmt.Errorf("%s has %d bytes, and %d were on the disk: it was cut short; %s",
			f.name, size, durable.SyncedSize, damagedFileRemedy)
	case !durable.UncheckedSinceUncleanClose: // all was synced; another program wrote the rest
		return cutOrEndTornLine(f.file)
	}
	// The lines that are on the disk must be whole.
	whole, err := measureValidLines(io.NewSectionReader(f.file, 0, durable.SyncedSize), isJSONRecordOrForeignText)
	if err == nil && whole.size < durable.SyncedSize {
		err = fmt.Errorf("%s is damaged: line %d is not whole, and was on the disk; %s", f.name, whole.lineCount+1, damagedFileRemedy)
	}
	if err != nil {
		return err
	}
	// The rest is cut where it is not.
	whole, err = measureValidLines(io.NewSectionReader(f.file, durable.SyncedSize, size-durable.SyncedSize), isRecordLine)
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

// A wholeLineExtent is the end of the whole lines of a file.
type wholeLineExtent struct{ size, lineCount int64 }

// measureValidLines returns the end of the lines before the first that has no line end or that
// is does not accept.
func measureValidLines(r io.Reader, isValid func(line []byte) bool) (extent wholeLineExtent, err error) {
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

// isRecordLine reports whether a line is one of output.
func isRecordLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte(recordPrefix)) && json.Valid(line)
}

// isJSONRecordOrForeignText reports whether a line is a line of output, or text that another program
// has written.
func isJSONRecordOrForeignText(line []byte) bool {
	if bytes.HasPrefix(line, []byte(recordPrefix)) {
		return json.Valid(line)
	}
	return utf8.Valid(line) && bytes.IndexByte(line, 0) < 0
}

// durableExtent returns how much of the file is on the disk; false if the output is not a
// regular file.
func (f *jsonlFile) durableExtent() (serial, size int64, ok bool) {
	if f == nil || !f.isRegular {
		return 0, 0, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil { // the file is full, and the next one does not exist yet
		return int64(f.lastRotatedSerial) + 1, 0, true
	}
	size = f.syncTracker.SyncedBytes(f.file)
	if info, err := f.file.Stat(); err != nil || info.Size() < size { // another program has emptied the file
		size = 0
	}
	return int64(f.lastRotatedSerial), size, true
}
