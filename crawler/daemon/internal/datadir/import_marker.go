package datadir

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// ImportNoteKey is the key of the note that marks an imported state. An export does not include the note.
const ImportNoteKey = "import"

// An ImportMarker identifies the export that a state was imported from, and says whether the import is
// complete.
type ImportMarker struct {
	ExportHeaderSHA256 string `json:"export"` // of the first line of the export, which contains the time
	Complete           bool   `json:"whole"`
}

// ReadImportMarker returns the marker of a state. imported is false for a state that was not imported.
func ReadImportMarker(ctx context.Context, frontier StoreInspectorImporter) (m ImportMarker, imported bool, err error) {
	text, err := frontier.ReadNote(ctx, decorum.Origin{}, ImportNoteKey)
	if err != nil || text == nil {
		return m, false, err
	}
	return m, true, json.Unmarshal(text, &m)
}

// SaveToFrontier stores the marker in the frontier, and flushes it to the disk.
func (m ImportMarker) SaveToFrontier(ctx context.Context, frontier StoreInspectorImporter) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(frontier.SetNote(ctx, decorum.Origin{}, ImportNoteKey, text), frontier.Flush(ctx))
}

// RequireCompleteImport returns an error if only a part of the state was imported. A crawl with such a
// state would visit pages again whose records are in the missing part.
func RequireCompleteImport(frontier StoreInspectorImporter) error {
	ctx, cancel := context.WithTimeout(context.Background(), RedisOpenTimeout)
	defer cancel()
	m, imported, err := ReadImportMarker(ctx, frontier)
	if err == nil && imported && !m.Complete {
		err = usage.Errorf("only a part of this crawl was imported: repeat decorum frontier import with the whole " +
			"export")
	}
	return err
}
