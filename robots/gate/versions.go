package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A FileVersion is the current robots.txt of an origin, or an earlier one.
type FileVersion struct {
	SHA256       string    `json:"sha256"`       // of the file, in hex
	Size         int       `json:"bytes"`        // the size of the file, in bytes
	FirstSeen    time.Time `json:"first"`        // when it was first received, as far as is known
	RedirectedTo string    `json:"at,omitempty"` // the URL after redirects; empty without redirects
}

// An archivedVersion is an earlier robots.txt of an origin. Its bytes are in a separate note, whose
// key ends with Slot, so that a change of the list rewrites only the list and one file.
type archivedVersion struct {
	FileVersion
	Slot int `json:"slot"`
}

// archiveVersionIfReplaced archives the previous file of an origin if current replaces it, and sets
// current.FirstSeen. It writes nothing unless the file has changed. The caller writes the record
// afterwards: if a crash prevents that, the next fetch archives the same file again.
func (s *recordStore) archiveVersionIfReplaced(ctx context.Context, o decorum.Origin, previous,
	current *storedResponse) error {
	if current.IsRobotsFile {
		current.FirstSeen = current.FetchedAt
	}
	if previous != nil && !previous.IsRobotsFile {
		previous = nil
	}
	// Most answers do not change the file.
	switch {
	case previous != nil && previous.SHA256 == current.SHA256:
		current.FirstSeen = previous.firstSeen()
		return nil
	case previous == nil && !current.IsRobotsFile:
		return nil
	}
	files, err := s.archivedVersions(ctx, o)
	if err != nil {
		return err
	}
	before := slices.Clone(files)
	// If the site has restored an earlier file, that one is current again.
	if i := indexOfVersionWithHash(files, current.SHA256); i >= 0 {
		current.FirstSeen = files[i].FirstSeen
		files = slices.Delete(files, i, i+1)
	}
	// Put the previous file first, and delete the oldest beyond the limits.
	var body []byte
	if previous != nil && indexOfVersionWithHash(files, previous.SHA256) < 0 {
		v := FileVersion{SHA256: previous.SHA256, Size: len(previous.body), FirstSeen: previous.firstSeen(),
			RedirectedTo: previous.RedirectedTo}
		files = slices.Insert(files, 0, archivedVersion{v, unusedVersionSlot(files)})
		body = previous.body
	}
	files = s.selectVersionsToKeep(files)
	if slices.Equal(files, before) {
		return nil
	}
	return s.saveArchivedVersions(ctx, o, before, files, body)
}

// firstSeen returns when the file was first received, as far as is known.
func (a *storedResponse) firstSeen() time.Time {
	return cmp.Or(a.FirstSeen, a.FetchedAt)
}

// indexOfVersionWithHash returns the index of the file with the hash, -1 if files lacks it.
func indexOfVersionWithHash(files []archivedVersion, hash string) int {
	return slices.IndexFunc(files, func(f archivedVersion) bool { return f.SHA256 == hash })
}

// unusedVersionSlot returns the lowest slot that no file has.
func unusedVersionSlot(files []archivedVersion) int {
	for slot := 0; ; slot++ {
		if !slices.ContainsFunc(files, func(f archivedVersion) bool { return f.Slot == slot }) {
			return slot
		}
	}
}

// selectVersionsToKeep returns the newest files, which come first, up to the limits of s.
func (s *recordStore) selectVersionsToKeep(files []archivedVersion) []archivedVersion {
	total := 0
	for i, f := range files {
		if total += f.Size; total > s.maxArchiveBytes || i+1 >= s.maxVersions {
			return files[:i]
		}
	}
	return files
}

// saveArchivedVersions replaces the list before by files. It writes body as the first of files,
// unless body is nil, and deletes the notes of files that are no longer in the list.
func (s *recordStore) saveArchivedVersions(ctx context.Context, o decorum.Origin, before,
	files []archivedVersion, body []byte) error {
	// Write the list last: after a crash it may name a missing file, which FileBodyByHash detects.
	for _, f := range before {
		if indexOfVersionWithHash(files, f.SHA256) < 0 {
			if err := s.writeNote(ctx, o, s.versionNoteKey(f.Slot), nil); err != nil {
				return err
			}
		}
	}
	if body != nil && len(files) > 0 {
		if err := s.writeNote(ctx, o, s.versionNoteKey(files[0].Slot), body); err != nil {
			return err
		}
	}
	var note []byte
	if len(files) > 0 {
		var err error
		if note, err = json.Marshal(files); err != nil {
			return err
		}
	}
	return s.writeNote(ctx, o, s.noteKeyForAgent(versionListNoteKey), note)
}

// versionNoteKey returns the key of the note with the bytes of the file in the slot.
func (s *recordStore) versionNoteKey(slot int) string {
	return s.noteKeyForAgent(versionNoteKeyPrefix + strconv.Itoa(slot))
}

// archivedVersions returns the earlier files of an origin, the newest first. It treats a damaged list
// as empty.
func (s *recordStore) archivedVersions(ctx context.Context, o decorum.Origin) (files []archivedVersion, err error) {
	note, err := s.readNote(ctx, o, s.noteKeyForAgent(versionListNoteKey))
	if err != nil || note == nil || json.Unmarshal(note, &files) != nil {
		return nil, err
	}
	return files, nil
}

// FileVersions returns the stored robots.txt files of an origin, the newest first and without
// repetitions, as far as Config.MaxVersions and MaxArchiveBytes permit. They were received by this
// Gate or by one that shares its notes and User-Agent.
func (g *Gate) FileVersions(ctx context.Context, o decorum.Origin) (versions []FileVersion, err error) {
	r, err := g.records.loadRecord(ctx, o)
	if err != nil {
		return nil, err
	}
	if a := r.LastResponse; a != nil && a.IsRobotsFile {
		versions = append(versions, FileVersion{SHA256: a.SHA256, Size: len(a.body), FirstSeen: a.firstSeen(),
			RedirectedTo: a.RedirectedTo})
	}
	files, err := g.records.archivedVersions(ctx, o)
	for _, f := range files {
		if len(versions) == 0 || f.SHA256 != versions[0].SHA256 {
			versions = append(versions, f.FileVersion)
		}
	}
	return versions, err
}

// FileBodyByHash returns the bytes of the file of an origin with the SHA-256 hash, in hex, or of the
// current file if hash is empty. It returns at most robots.MaxFileBytes + 1 bytes, and nil if the file
// is not stored.
func (g *Gate) FileBodyByHash(ctx context.Context, o decorum.Origin, hash string) ([]byte, error) {
	r, err := g.records.loadRecord(ctx, o)
	if err != nil {
		return nil, err
	}
	if a := r.LastResponse; a != nil && a.IsRobotsFile && (hash == "" || hash == a.SHA256) {
		return append([]byte{}, a.body...), nil
	}
	files, err := g.records.archivedVersions(ctx, o)
	i := indexOfVersionWithHash(files, hash)
	if err != nil || i < 0 {
		return nil, err
	}
	body, err := g.records.readNote(ctx, o, g.records.versionNoteKey(files[i].Slot))
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return nil, err // after a crash the note may not match the list
	}
	return append([]byte{}, body...), err
}
