package api

import (
	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/decorum-crawler/decorum/robots"
)

// A RobotsTextDiff is how two versions of a robots.txt differ, line by line. What
// they mean to a crawler is compared by lint.Diff.
type RobotsTextDiff struct {
	OldSHA256        string           `json:"old_sha256"`
	NewSHA256        string           `json:"new_sha256"`
	AddedLineCount   int              `json:"added"`                // lines of new only
	RemovedLineCount int              `json:"removed"`              // lines of old only
	Lines            []RobotsDiffLine `json:"lines"`                // of both files, removed ones before those in their place
	UncomparedLines  int              `json:"lines_left,omitempty"` // lines of both that were not compared, of files with more than 100,000
}

// A RobotsDiffLine is a line of one of two versions, or of both.
type RobotsDiffLine struct {
	Kind    string `json:"kind"`          // same, added or removed
	OldLine int    `json:"old,omitempty"` // number of the line in the old file, from 1; none if it was added
	NewLine int    `json:"new,omitempty"` // number of the line in the new file; none if it was removed
	Text    string `json:"text"`          // without the end of the line
}

// Kinds of lines.
const (
	LineSame    = "same"
	LineAdded   = "added"
	LineRemoved = "removed"
)

// maxDiffLines is how many lines of a file are compared: what is beyond is counted
// in RobotsTextDiff.UncomparedLines. Few files have a thousand.
const maxDiffLines = 100_000

// DiffRobotsLines compares the texts of two versions. It takes time in proportion to
// their lines: where they differ in very many it finds a change, not the least.
func DiffRobotsLines(old, new *RobotsFile) *RobotsTextDiff {
	d := &RobotsTextDiff{OldSHA256: old.SHA256, NewSHA256: new.SHA256}
	before, after := d.linesToCompare(old.Text), d.linesToCompare(new.Text)
	d.Lines = make([]RobotsDiffLine, 0, max(len(before), len(after)))
	pos := 0
	appendSame := func(end, shift int) {
		for ; pos < end; pos++ {
			d.Lines = append(d.Lines, RobotsDiffLine{LineSame, pos + 1, pos + 1 + shift, before[pos]})
		}
	}
	shift := 0
	for _, c := range lcs.DiffLines(before, after) {
		appendSame(c.Start, shift)
		for ; pos < c.End; pos++ {
			d.Lines = append(d.Lines, RobotsDiffLine{Kind: LineRemoved, OldLine: pos + 1, Text: before[pos]})
		}
		for i := c.ReplStart; i < c.ReplEnd; i++ {
			d.Lines = append(d.Lines, RobotsDiffLine{Kind: LineAdded, NewLine: i + 1, Text: after[i]})
		}
		d.RemovedLineCount += c.End - c.Start
		d.AddedLineCount += c.ReplEnd - c.ReplStart
		shift = c.ReplEnd - c.End
	}
	appendSame(len(before), shift)
	return d
}

// linesToCompare returns the lines of a text that are compared.
func (d *RobotsTextDiff) linesToCompare(text string) []string {
	var lines []string
	for n, line := range robots.Lines(text) {
		if n > maxDiffLines {
			d.UncomparedLines++
			continue
		}
		lines = append(lines, line)
	}
	return lines
}
