package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"windlass.dev/bench/api"
)

// Cache mode: caches every object of a kind, and proves it by answering reads.

type cacheSynced struct {
	Event string `json:"event"`
	Count int    `json:"count"`
	Names string `json:"names"`
	Sizes int64  `json:"sizes"`
}

type cacheObject struct {
	Event string          `json:"event"`
	Found bool            `json:"found"`
	Bytes int             `json:"bytes"`
	Spec  *api.WidgetSpec `json:"spec,omitempty"`
	Size  int64           `json:"size"`
	Color string          `json:"color"`
}

func runCache(ctx context.Context, s *subject) error {
	if s.page {
		if err := disableWatchList(); err != nil {
			return err
		}
	}
	mgr, err := s.newManager(func(options *ctrl.Options) {
		if s.page {
			options.Cache.NewInformer = newPagedInformer
		}
		if s.tuned && s.form == formNeeded && s.kind == kindWidget {
			options.Cache.ByObject = map[client.Object]cache.ByObject{
				&api.Widget{}: {Transform: transform(keepNeeded)},
			}
		}
	})
	if err != nil {
		return err
	}

	for i := range s.controllers {
		err := ctrl.NewControllerManagedBy(mgr).
			For(s.cachedKind()).
			Named(fmt.Sprintf("cache-%d", i)).
			Complete(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
				return ctrl.Result{}, nil
			}))
		if err != nil {
			return err
		}
	}

	// Asked for before the start, so that the manager itself waits for the sync and
	// no time passes between it and the first answer.
	if _, err := mgr.GetCache().GetInformer(ctx, s.cachedKind(), cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	if err := mgr.Add(background(func(ctx context.Context) error {
		if err := s.cacheCount(ctx, mgr); err != nil {
			return err
		}
		return s.serveCommands(ctx, os.Stdin, map[string]command{
			"count": func(ctx context.Context, _ []string) error { return s.cacheCount(ctx, mgr) },
			"read":  func(ctx context.Context, args []string) error { return s.cacheRead(ctx, mgr, args) },
		})
	})); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// cachedKind is a fresh, empty object of the type under which the kind is cached.
func (s *subject) cachedKind() client.Object {
	switch {
	case s.form == formMetadata:
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(api.WidgetGVK)
		if s.kind == kindConfigMap {
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		}
		return object
	case s.kind == kindConfigMap:
		return &corev1.ConfigMap{}
	default:
		return &api.Widget{}
	}
}

// cacheCount prints the number of objects, with checksums that cannot be guessed.
func (s *subject) cacheCount(ctx context.Context, mgr ctrl.Manager) error {
	objects, err := cached(ctx, mgr, s.cachedKind())
	if err != nil {
		return err
	}
	var names uint64
	var sizes int64
	hash := fnv.New64a()
	var key []byte
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		key = append(key[:0], accessor.GetNamespace()...)
		key = append(key, '/')
		key = append(key, accessor.GetName()...)
		hash.Reset()
		_, _ = hash.Write(key) // never fails
		names += hash.Sum64()
		if widget, ok := object.(*api.Widget); ok {
			sizes += widget.Spec.Size
		}
	}
	s.out.emit(cacheSynced{Event: "synced", Count: len(objects), Names: fmt.Sprintf("%016x", names), Sizes: sizes})
	return nil
}

// cacheRead prints one object as the cached client returns it.
func (s *subject) cacheRead(ctx context.Context, mgr ctrl.Manager, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want a namespace and a name, got %d words", len(args))
	}
	object := s.cachedKind()
	err := mgr.GetClient().Get(ctx, types.NamespacedName{Namespace: args[0], Name: args[1]}, object)
	if apierrors.IsNotFound(err) {
		s.out.emit(cacheObject{Event: "object"})
		return nil
	}
	if err != nil {
		return err
	}

	encoded, err := json.Marshal(object)
	if err != nil {
		return err
	}
	answer := cacheObject{Event: "object", Found: true, Bytes: len(encoded)}
	if widget, ok := object.(*api.Widget); ok {
		answer.Size, answer.Color = widget.Spec.Size, widget.Spec.Color
		if s.form == formFull {
			answer.Spec = &widget.Spec
		}
	}
	s.out.emit(answer)
	return nil
}
