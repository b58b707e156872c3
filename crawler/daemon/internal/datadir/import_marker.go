package datadir

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// ImportNoteKey is the crawl's note that its state was imported. It is of this state
// alone, and in no export.
const ImportNoteKey = "import"

// An ImportMarker says what was imported, and whether it is all there.
type ImportMarker struct {
	ExportHeaderSHA256 string `json:"export"` // SHA-256 of the first line, which has the time
	Complete           bool   `json:"whole"`
}

// ReadImportMarker returns the mark of a state; false if it was not imported.
func ReadImportMarker(ctx context.Context, frontier StoreInspectorImporter) (m ImportMarker, imported bool, err error) {
	text, err := frontier.ReadNote(ctx, decorum.Origin{}, ImportNoteKey)
	if err != nil || text == nil {
		return m, false, err
	}
	return m, true, json.Unmarshal(text, &m)
}

func (m ImportMarker) SaveToFrontier(ctx context.Context, frontier StoreInspectorImporter) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(frontier.SetNote(ctx, decorum.Origin{}, ImportNoteKey, text), frontier.Flush(ctx))
}

// RequireCompleteImport returns an error if only a part of the state was imported: who crawls
// with it would visit pages again that are still to come as seen.
func RequireCompleteImport(frontier StoreInspectorImporter) error {
	ctx, cancel := context.WithTimeout(context.Background(), RedisOpenTimeout)
	defer cancel()
	m, imported, err := ReadImportMarker(ctx, frontier)
	if err == nil && imported && !m.Complete {
		err = usage.Errorf("only a part of this crawl was imported: repeat decorum frontier import with the whole export")
	}
	return err
}
