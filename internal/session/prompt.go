package session

import (
	"context"
	"fmt"
	"os"
	"strings"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/prompt"
	"github.com/theloop-dev/the-loop/internal/text"
)

// maxText is the longest text of a message, in bytes.
const maxText = text.Limit

// maxPromptFile bounds a brief that is read from a file, in bytes.
const maxPromptFile = 256 << 10

// bootText is the first message of a fresh conversation, "" for none.
func (e *Engine) bootText(ctx context.Context, s *Subject, terminal string) (string, error) {
	switch obj := s.Object.(type) {
	case *api.WorkItemSession:
		return e.spawnText(ctx, s, obj)
	case *api.StandingSession:
		brief, err := e.brief(ctx, s, obj)
		if err != nil {
			return "", err
		}
		text := directive(obj.Name, e.Terminal.AttachCommand(terminal, false))
		if brief != "" {
			text += "\n\n---\n\n" + brief
		}
		if len(text) > maxText {
			return "", fmt.Errorf("the brief has %d bytes, and with what every standing session is told %d: at most %d can be typed; put the rest into a file in the session's directory and refer to it", len(brief), len(text), maxText)
		}
		return text, nil
	}
	return "", nil
}

// maxTemplate bounds a template, in bytes.
const maxTemplate = 64 << 10

// spawnText is the first message about a work item. The session of a pull request is
// started by an event, which is put to it as a message.
func (e *Engine) spawnText(ctx context.Context, s *Subject, obj *api.WorkItemSession) (string, error) {
	if s.Class == nil || s.Class.Spec.Prompts.Spawn.From == api.PromptNone || obj.Spec.PullRequest != nil {
		return obj.Spec.Prompt, nil
	}
	template, err := readTemplate(ctx, s.Store, s.Class.Spec.Prompts.Spawn)
	if err != nil {
		return "", fmt.Errorf("spec.prompts.spawn of SessionClass %s: %w", s.Class.Name, err)
	}
	item := obj.Spec.WorkItem
	text := prompt.Spawn(template, prompt.Vars{
		WorkItem: RefOf(obj).String(), Repository: item.Owner + "/" + item.Repo, Task: strings.TrimSpace(obj.Spec.Prompt),
		Interaction: prompt.Interaction(s.Class.Spec.Interaction),
	})
	if len(text) > maxText {
		return "", fmt.Errorf("spec.prompts.spawn of SessionClass %s makes a first message of %d bytes: at most %d can be typed", s.Class.Name, len(text), maxText)
	}
	return text, nil
}

// readTemplate is the text of a template, "" for the built-in one.
func readTemplate(ctx context.Context, store Store, t api.PromptTemplate) (string, error) {
	if t.ConfigMapKeyRef == nil {
		return "", nil
	}
	text, err := store.ConfigMapKey(ctx, *t.ConfigMapKeyRef)
	switch ref := t.ConfigMapKeyRef; {
	case err != nil:
		return "", err
	case len(text) > maxTemplate:
		return "", fmt.Errorf("key %q of ConfigMap %s/%s has %d bytes: a template has at most %d", ref.Key, ref.Namespace, ref.Name, len(text), maxTemplate)
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("key %q of ConfigMap %s/%s is empty: write a template into it, or set from: BuiltIn or None", ref.Key, ref.Namespace, ref.Name)
	}
	return text, nil
}

// asksOnWorkItem reports whether an agent is to ask its questions on its work item, because
// nobody sits at its terminal.
func asksOnWorkItem(obj api.HostedSession, class *api.SessionClass) bool {
	return obj.SessionKind() == api.KindWorkItemSession && class != nil && class.Spec.Interaction != string(prompt.CLI)
}

func (e *Engine) brief(ctx context.Context, s *Subject, obj *api.StandingSession) (string, error) {
	switch {
	case obj.Spec.PromptFile != "":
		path, err := e.expand(obj.Spec.PromptFile)
		if err != nil {
			return "", fmt.Errorf("spec.promptFile: %w", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("spec.promptFile cannot be read on host %s: %w", e.HostName, err)
		}
		if !info.Mode().IsRegular() || info.Size() > maxPromptFile {
			return "", fmt.Errorf("spec.promptFile %s must be a regular file of at most %d bytes", path, maxPromptFile)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("spec.promptFile cannot be read on host %s: %w", e.HostName, err)
		}
		return strings.TrimSpace(string(data)), nil
	case obj.Spec.PromptFrom != nil:
		text, err := s.Store.ConfigMapKey(ctx, api.NamespacedConfigMapKey{Namespace: obj.Namespace, ConfigMapKey: obj.Spec.PromptFrom.ConfigMapKeyRef})
		if err != nil {
			return "", fmt.Errorf("spec.promptFrom: %w", err)
		}
		return strings.TrimSpace(text), nil
	}
	return obj.Spec.Prompt, nil
}

// directive is what every standing session is told. It is not configurable: an
// operator's brief is appended to it and never replaces it (standing sessions, "What
// the session is told").
func directive(name, attach string) string {
	return fmt.Sprintf(`You are the standing session %[1]q, kept by the-loop. Keep to these rules for the whole conversation.

- You were started by the-loop as a standing session: it owns no ticket, no specification and no pull request. Delivering something does not end it; it ends when its operator stops it.
- Never answer a phase-selection gate, never approve a phase and never post a control keyword (start, stop, pause, resume, cleanup and the like) on any ticket. Those are declarations of a named person, and yours would set somebody else's work item going.
- Open no pull request and push nothing, unless your operator asks for it in this conversation.
- You may read what you need: sessions, their status and events, work items and repositories. Report what you find here.
- Should you be asked to comment anywhere, say in the comment that the-loop's standing session %[1]q wrote it.
- Your operator speaks to you here: by messages to this session (kubectl create of a SessionMessage for StandingSession %[1]s, or the-loop standing say %[1]s), or at the attached terminal (%[2]s).
- A question that you ask anywhere else is never answered. Ask it here, and wait.`, name, attach)
}
