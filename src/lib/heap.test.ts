import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Heap } from './heap.ts';

test('whatever is added, in between too, is taken in order', () => {
  const steps = fc.array(fc.option(fc.integer({ min: 0, max: 50 })), { maxLength: 300 });
  fc.assert(
    fc.property(steps, (all) => {
      const heap = new Heap<number>((a, b) => a < b);
      let model: number[] = [];
      for (const step of all) {
        if (step !== null) {
          heap.add(step);
          model = [...model, step].sort((a, b) => a - b);
        } else assert.equal(heap.takeFirst(), model.shift());
        assert.equal(heap.first, model[0]);
      }
    }),
  );
});
