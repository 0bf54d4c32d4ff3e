import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../config.ts';
import { createAddresses } from './addresses.ts';

test('an address has a port unless it is the one of its scheme', () => {
  const settings = { SLUICE_ROUTER_DOMAIN: 'apps.example' };
  const other = createAddresses(readConfig(settings, false));
  assert.equal(other.environmentUrl('shop'), 'http://shop.apps.example:8000');
  assert.equal(other.domainUrl('shop.example'), 'https://shop.example:8443');
  const usual = { ...settings, SLUICE_ROUTER_PORT: '80', SLUICE_ROUTER_TLS_PORT: '443' };
  const own = createAddresses(readConfig(usual, false));
  assert.equal(own.environmentUrl('shop'), 'http://shop.apps.example');
  assert.equal(own.domainUrl('shop.example'), 'https://shop.example');
});
