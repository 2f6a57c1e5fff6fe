import { useEffect, useState } from "preact/hooks";

// A value that several parts of the page show, and that tells them when it changes.
export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }
  set value(next: T) {
    if (Object.is(next, this.current)) return;
    this.current = next;
    for (const listener of [...this.listeners]) listener();
  }

  // Calls `listener` after every change until the returned function is called.
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

// The value of a store, drawn again when it changes.
export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState({});
  useEffect(() => {
    redraw({});
    return store.subscribe(() => redraw({}));
  }, [store]);
  return store.value;
}
