package api

import (
	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/decorum-crawler/decorum/robots"
)

// A RobotsTextDiff is the difference of the texts of two versions of a robots.txt, line by line.
// lint.Diff compares what they mean to a crawler.
type RobotsTextDiff struct {
	OldSHA256        string `json:"old_sha256"`
	NewSHA256        string `json:"new_sha256"`
	AddedLineCount   int    `json:"added"`   // lines of the new file only
	RemovedLineCount int    `json:"removed"` // lines of the old file only
	// Lines are the lines of both files. Removed lines come before the lines that replace them.
	Lines []RobotsDiffLine `json:"lines"`
	// UncomparedLines counts the lines of both files beyond the first 100,000 of each, which are not
	// compared.
	UncomparedLines int `json:"lines_left,omitempty"`
}

// A RobotsDiffLine is a line of the old version, of the new version, or of both.
type RobotsDiffLine struct {
	Kind    string `json:"kind"`          // same, added or removed
	OldLine int    `json:"old,omitempty"` // number of the line in the old file, from 1; absent: the line was added
	NewLine int    `json:"new,omitempty"` // number of the line in the new file, from 1; absent: the line was removed
	Text    string `json:"text"`          // without the line ending
}

// The values of RobotsDiffLine.Kind.
const (
	LineSame    = "same"
	LineAdded   = "added"
	LineRemoved = "removed"
)

// maxDiffLines is how many lines of a file are compared. RobotsTextDiff.UncomparedLines counts
// the rest. Few files have even a thousand lines.
const maxDiffLines = 100_000

// DiffRobotsLines compares the texts of two versions. It takes time in proportion to the number of
// their lines; if very many differ, the difference is correct but not the smallest.
func DiffRobotsLines(old, new *RobotsFile) *RobotsTextDiff {
	d := &RobotsTextDiff{OldSHA256: old.SHA256, NewSHA256: new.SHA256}
	before, after := d.linesToCompare(old.Text), d.linesToCompare(new.Text)
	d.Lines = make([]RobotsDiffLine, 0, max(len(before), len(after)))
	pos := 0 // the next line of before, from 0
	// appendSame adds the lines from pos to end, which both texts have, shift lines apart.
	appendSame := func(end, shift int) {
		for ; pos < end; pos++ {
			d.Lines = append(d.Lines, RobotsDiffLine{LineSame, pos + 1, pos + 1 + shift, before[pos]})
		}
	}
	shift := 0 // lines added minus lines removed so far
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

// linesToCompare returns the first maxDiffLines lines of a text, and counts the rest in
// d.UncomparedLines.
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
